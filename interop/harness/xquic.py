"""xquic, whose programs are built elsewhere: `XQUIC_DEMO` has the folder of demo_client and demo_server. It speaks the
version of draft-ietf-quic-multipath-10."""

import os
import re
from pathlib import Path

from .verdicts import Unsupported

# Both paths leave by this interface; the client opens a socket for each.
INTERFACE = "lo"
# Keys are updated after so many packets.
UPDATE_AFTER = "200"
# The client acts on paths by time; in these cases it receives a megabyte in about so many milliseconds.
MILLISECONDS_PER_MB = 400
# In a folder of its own: the programs have fixed names for certificates and for the state that they keep.
RUN = 'mkdir -p "$1" && cd "$1" && shift && exec "$@"'


class Xquic:
    """`demo_client` and `demo_server`, for the cases of several paths, over `hq-interop`."""

    name = "xquic"
    variable = "XQUIC_DEMO"
    http = None
    chooses_suite = False
    several_paths = True
    only_several_paths = True
    # It declares initial_max_path_id 8.
    fixed_paths = 9
    # As an option of Swiftwater.
    multipath_version = "draft10"
    wants_name = True
    needs_spare_cid = True
    version = "?"

    def __init__(self, folder):
        # The folder, or one of the programs in it.
        given = Path(folder)
        self.folder = given if given.is_dir() else given.parent

    def run(self, folder, program, *options):
        return ["sh", "-c", RUN, "sh", str(folder), str(self.folder / program), "-l", "e", *options]

    def paths(self, task):
        """The options of both roles."""
        if task.paths is None:
            return []
        return ["-M", "-s", "backup"]

    def server(self, task, address):
        if task.paths and task.paths.maximum is not None:
            raise Unsupported("demo_server has no option for its limit of paths (9)")
        if task.paths and (task.paths.operations or task.paths.rotate_after):
            raise Unsupported("demo_server has no option to act on paths or to replace connection IDs")
        folder = task.identity.certificate.parent / "xquic-server"
        folder.mkdir(exist_ok=True)
        for name, file in (("server.crt", task.identity.certificate), ("server.key", task.identity.key)):
            place = folder / name
            place.unlink(missing_ok=True)
            place.symlink_to(os.path.abspath(file))
        options = ["-u", UPDATE_AFTER] if task.key_update else []
        host, _, port = address.rpartition(":")
        place = ["-a", host, "-p", port, "-D", str(task.directory)]
        return self.run(folder, "demo_server", *place, *self.paths(task), *options)

    def clients(self, task):
        if len(task.urls) != 1:
            raise Unsupported("demo_client gets one file")
        host, port, name = re.fullmatch(r"https://(.+):(\d+)/(.*)", task.urls[0]).groups()
        options = self.paths(task)
        if task.paths:
            options += self.on_paths(task.paths)
        if task.key_update:
            options += ["-u", UPDATE_AFTER]
        task.output.mkdir(parents=True, exist_ok=True)
        place = ["-D", str(task.output), "-U", f"https://localhost:{port}/{name}"]
        folder = task.output.parent / "xquic-client"
        return [self.run(folder, "demo_client", "-a", host, "-p", port, "-A", "hq", "-c", "c", *place, *options)]

    def on_paths(self, paths):
        """The options of a client."""
        options = []
        if len(paths.addresses) > 2:
            raise Unsupported("demo_client opens two paths at most")
        for _ in paths.addresses:
            options += ["-i", INTERFACE]
        if paths.maximum == 1:
            raise Unsupported("demo_client can't declare 0: -f 0 declares 8")
        if paths.maximum is not None:
            options += ["-f", str(paths.maximum - 1)]
        for after, action, path in paths.operations:
            if action != "abandon":
                raise Unsupported("demo_client changes the status of path 0 only")
            options += ["-Z", str(after * MILLISECONDS_PER_MB // 1_000_000), "-z", str(path)]
        if paths.rotate_after:
            raise Unsupported("demo_client names -y among its options, and refuses it")
        return options
