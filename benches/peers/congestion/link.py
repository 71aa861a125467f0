"""The link, and its cells: buffer and random loss."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """What all cells have in common."""

    rate: str
    # Round-trip time without queues, ms.
    rtt: float
    # Of a transfer.
    bytes: int


@dataclass(frozen=True)
class Cell:
    """A buffer and a random loss, as the command line takes them."""

    buffer: str
    loss: str

    @classmethod
    def parse(cls, text):
        buffer, _, loss = text.partition("/")
        return cls(buffer, loss or "none")

    def __str__(self):
        return f"{self.buffer}/{self.loss}"


CELLS = [Cell(buffer, "none") for buffer in ("0.1bdp", "0.43bdp", "1bdp", "5bdp")]
CELLS += [Cell("1bdp", loss) for loss in ("0.1%", "1%", "2%", "5%")]
