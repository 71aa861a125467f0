"""What is known of failures that come again: whose fault they are, and why. The text of the RFCs settles it;
docs/conformance.md has more. The page shows it whether the cell failed this time or not."""

RUSTLS_TICKETS = (
    "A matter of chance, and the doing of rustls, which {name} uses: it tells the age of a session ticket as a "
    "difference of whole seconds, so that a ticket that saw a second begin looks up to a second too old, and GnuTLS "
    "refuses 0-RTT with a ticket older than itself. (RFC 8446, section 4.2.11.1: the age in milliseconds.) 0-RTT was "
    "refused in 3 of 4 connections that were timed so, in none of 4 that weren't. quiche's and quic-go's clients "
    "are refused at times, too"
)
MIGRATIONS = ("rebind-port", "rebind-addr", "connectionmigration")

# By server, client and cases.
DIAGNOSES = {
    ("quiche", "swiftwater", MIGRATIONS): (
        "A matter of chance, and quiche's fault: as a server it never sends again what was lost on the way to "
        "the client's old address, though later packets are acknowledged, because it looks for losses on each "
        "path alone. (RFC 9002, section 6.1: what is older than an acknowledged packet of the same number "
        "space is lost; RFC 9000, section 13.3: lost data is sent again.) If anything was lost the transfer "
        "hangs until the idle timeout: once in 18 more runs with the same program"
    ),
    ("quiche", "swiftwater", ("handshakeloss",)): (
        "A matter of chance, and nobody's fault: in one of 50 connections all four copies of the ServerHello "
        "were lost. quiche sends it again only when its own timer expires, after 1 s at first and ever later, "
        "and answers the client's probes with mere acknowledgements; after 60 s the client gave up. (RFC 9002, "
        "section 6.2.3, recommends to do more, and leaves it open)"
    ),
    ("swiftwater", "quiche", ("handshakeloss",)): (
        "A matter of chance, and nobody's fault: in one of 50 connections quiche's first acknowledgement was lost, and the repetition "
        "three seconds later made the server's first sample of the round trip, as RFC 9002, section 5.1, takes "
        "it. The probe timeout was then 10 s, two probes were lost, and the idle timeout of 30 s was over"
    ),
    ("ngtcp2", "swiftwater", ("h3_zerortt",)): RUSTLS_TICKETS.format(name="Swiftwater"),
    ("ngtcp2", "quinn", ("h3_zerortt",)): RUSTLS_TICKETS.format(name="quinn"),
} | {
    (server, "swiftwater", ("handshakecorruption",)): (
        f"A matter of chance, and {server}'s doing: a corrupted first byte can make a Retry packet of a "
        f"Handshake packet, at which {server}'s server closes the connection with PROTOCOL_VIOLATION before "
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
