"""Explanations of recurring failures, with the responsible stack and the RFC text; docs/conformance.md has more. The
page shows them whether the cell failed this time or not."""

RUSTLS_TICKETS = (
    "Occurs by chance, caused by rustls, which {name} uses: it sends the age of a session ticket as a difference "
    "of whole seconds, so that a ticket can appear up to a second too old, and GnuTLS "
    "rejects 0-RTT with a ticket older than possible. (RFC 8446, section 4.2.11.1: the age in milliseconds.) 0-RTT was "
    "rejected in 3 of 4 connections with that timing, in none of 4 others. quiche's and quic-go's clients "
    "are occasionally rejected, too"
)
MIGRATIONS = ("rebind-port", "rebind-addr", "connectionmigration")

# By server, client and cases.
DIAGNOSES = {
    ("quiche", "swiftwater", MIGRATIONS): (
        "Occurs by chance, a fault of quiche: as a server it never retransmits data lost in packets to "
        "the client's previous address, though later packets are acknowledged, because it detects losses on each "
        "path separately. (RFC 9002, section 6.1: packets older than an acknowledged one of the same packet number "
        "space are lost; RFC 9000, section 13.3: lost data are retransmitted.) If data were lost the transfer "
        "hangs until the idle timeout: once in 18 more runs with the same program"
    ),
    ("quiche", "swiftwater", ("handshakeloss",)): (
        "Occurs by chance, no fault of a stack: in one of 50 connections all four copies of the ServerHello "
        "were lost. quiche retransmits it only when its own PTO expires, after 1 s at first with back-off, "
        "and answers the client's probes with acknowledgements only; after 60 s the client reached its time limit. "
        "(RFC 9002, section 6.2.3, recommends more, as an option)"
    ),
    ("swiftwater", "quiche", ("handshakeloss",)): (
        "Occurs by chance, no fault of a stack: in one of 50 connections quiche's first acknowledgement was lost, and the "
        "retransmission three seconds later gave the server's first RTT sample (RFC 9002, section 5.1). "
        "The probe timeout was then 10 s, two probes were lost, and the idle timeout of 30 s expired"
    ),
    ("ngtcp2", "swiftwater", ("h3_zerortt",)): RUSTLS_TICKETS.format(name="Swiftwater"),
    ("ngtcp2", "quinn", ("h3_zerortt",)): RUSTLS_TICKETS.format(name="quinn"),
} | {
    (server, "swiftwater", ("handshakecorruption",)): (
        f"Occurs by chance, caused by {server}: a corrupted first byte can turn a Handshake packet into a "
        f"Retry packet, upon which {server}'s server closes the connection with PROTOCOL_VIOLATION before "
        "anything was authenticated. (RFC 9000, section 5.2: such packets may be discarded.) Seen with noq; "
        "quinn has the same lines"
    )
    for server in ("quinn", "noq")
}


def diagnosis(row):
    """What is known of a case with these two; None if nothing is."""
    for (server, client, cases), text in DIAGNOSES.items():
        if row["server"] == server and row["client"] == client and row["case"] in cases:
            return text
    return None
