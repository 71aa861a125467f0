"""What is known of failures that come again: whose fault they are, and why. The text of the RFCs settles it;
docs/conformance.md has more."""

# By server, client and case; the page adds it to what the failed case said.
DIAGNOSES = {
}


def diagnosis(row):
    """What is known of a failed case; None if nothing is."""
    for (server, client, cases), text in DIAGNOSES.items():
        if row["server"] == server and row["client"] == client and row["case"] in cases:
            return text
    return None
