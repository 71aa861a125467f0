"""What is served: files with contents that don't depend on the machine, and lists of them to request."""

import random
from pathlib import Path

SEED = 1
LARGE = 20_000_000
ANSWER = 1000


class Listing:
    """Paths to request, with the sizes of the files."""

    def __init__(self, sizes):
        self.paths = list(sizes)
        self.sizes = list(sizes.values())

    def __len__(self):
        return len(self.paths)

    def from_share(self, number, shares):
        """The same, beginning with one of so many equal shares: what comes before it follows at the end."""
        start = number * len(self) // shares
        order = [*range(start, len(self)), *range(start)]
        return Listing({self.paths[index]: self.sizes[index] for index in order})

    def bytes(self, requests):
        """Content of the first so many requests, again from the start after the last path."""
        rounds, rest = divmod(requests, len(self))
        return rounds * sum(self.sizes) + sum(self.sizes[:rest])

    def write(self, path, origin):
        Path(path).write_text("".join(f"{origin}{name}\n" for name in self.paths))


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
