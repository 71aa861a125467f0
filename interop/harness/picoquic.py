"""picoquic, whose program is built elsewhere: `PICOQUICDEMO` has its path."""

import os
import re
import subprocess

from .verdicts import Unsupported

# The index of the loopback interface, which the program wants beside a local address.
LOOPBACK = 1
# The client updates its keys once, after so many packets.
UPDATE_AFTER = "200"


class Picoquic:
    """`picoquicdemo`, for the cases of several paths, over `hq-interop`."""

    name = "picoquic"
    variable = "PICOQUICDEMO"
    http = None
    chooses_suite = False
    several_paths = True
    only_several_paths = True
    # It declares initial_max_path_id 2.
    fixed_paths = 3
    multipath_version = None
    wants_name = False
    needs_spare_cid = False

    def __init__(self, program):
        self.program = str(program)
        self.version = self.find_version()

    def find_version(self):
        """A server without a certificate names its version and ends."""
        command = [self.program, "-p", "0", "-c", os.devnull, "-k", os.devnull]
        try:
            asked = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=3)
        except (OSError, subprocess.TimeoutExpired):
            return "?"
        found = re.search(r"\(v([\d.]+)\)", asked.stdout + asked.stderr)
        return found[1] if found else "?"

    def paths(self, task):
        """The options of both roles."""
        if task.paths is None:
            return []
        if task.paths.maximum is not None:
            raise Unsupported("picoquicdemo's limit of paths is fixed (3)")
        if task.paths.operations:
            raise Unsupported("picoquicdemo has no option to abandon a path or to change its status")
        if task.paths.rotate_after:
            raise Unsupported("picoquicdemo has no option to replace connection IDs of paths")
        return ["-M"]

    def server(self, task, address):
        if task.key_update:
            raise Unsupported("picoquicdemo updates its keys as a client only")
        port = address.rpartition(":")[2]
        identity = ["-c", str(task.identity.certificate), "-k", str(task.identity.key)]
        return [self.program, "-p", port, *identity, "-w", str(task.directory), *self.paths(task)]

    def clients(self, task):
        host, port = re.fullmatch(r"https://(.+):(\d+)/.*", task.urls[0]).groups()
        options = self.paths(task)
        further = [f"{address}/{LOOPBACK}" for address in task.paths.addresses[1:]] if task.paths else []
        if further:
            options += ["-A", ",".join(further)]
        if task.key_update:
            options += ["-u", UPDATE_AFTER]
        folder = task.output.parent
        state = ["-T", str(folder / "tickets.bin"), "-N", str(folder / "tokens.bin")]
        place = ["-o", str(task.output), "-t", str(task.ca), "-n", "localhost", "-a", "hq-interop"]
        streams = ";".join(
            f"{4 * number}:/{url.rpartition('/')[2]}" for number, url in enumerate(task.urls)
        )
        return [[self.program, *place, *state, *options, host, port, streams]]
