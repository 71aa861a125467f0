"""What is served: files with contents that don't depend on the machine, and lists of them to request."""

import random
from pathlib import Path

SEED = 1
LARGE = 20_000_000
ANSWER = 1000


class Listing:
    """Paths in the order in which each connection requests them, again from the start after the last."""

    def __init__(self, sizes):
        self.sizes = sizes

    def bytes(self, requests, connections):
        """Content of so many requests, divided evenly among connections."""
        each = requests // connections
        sizes = list(self.sizes.values())
        rounds, rest = divmod(each, len(sizes))
        return connections * (rounds * sum(sizes) + sum(sizes[:rest]))

    def write(self, path, origin):
        Path(path).write_text("".join(f"{origin}{name}\n" for name in self.sizes))


def create(folder, small_files):
    """Writes the files below `folder`; returns the listings by name."""
    chance = random.Random(SEED)
    small = {}
    for number in range(small_files):
        name = f"/small/{number % 100:02}/{number}.html"
        path = folder / name[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        size = chance.randint(1_000, 10_000)
        path.write_bytes(chance.randbytes(size))
        small[name] = size
    order = list(small)
    chance.shuffle(order)
    (folder / "large.bin").write_bytes(chance.randbytes(LARGE))
    (folder / "answer.html").write_bytes(chance.randbytes(ANSWER))
    return {
        "small": Listing({name: small[name] for name in order}),
        "large": Listing({"/large.bin": LARGE}),
        "answer": Listing({"/answer.html": ANSWER}),
    }
