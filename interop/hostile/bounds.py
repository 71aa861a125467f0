"""What an attack may cost, and why."""

# An honest client waits no longer than this for a small file, seconds: beyond a second a page feels broken.
# It holds for a build with optimisations on a machine that does little else; `--slack` multiplies it.
LATENCY = 1.0
# Nobody waits longer than this: the request counts as not answered, seconds.
NO_ANSWER = 4.0
# The resident memory of a server may grow by so much under an attack, bytes. Most attacks take some MB of
# connection state; the rest is for what allocators keep.
MEMORY = 96 << 20
# The same where slow readers make the server keep what it has read for them, bytes: its budget for
# responses under way, and connection state.
MEMORY_OF_SLOW_READERS = 320 << 20
# The same for directories of thousands of entries: each listing under way is in memory, bytes.
MEMORY_OF_LISTINGS = 192 << 20
# Some time after the attack the server is idle again: processor time over time.
IDLE = 0.25
# How long it may take to become idle, seconds.
CALMING = 3.0
# Descriptors that must be left of the limit while the server is under attack: those of the next few
# connections and their files.
SPARE_DESCRIPTORS = 8
# SIGTERM ends a server within its `--grace` and this long, seconds.
STOPPING = 3.0
# `get --max-time` ends within so much more time, seconds: closing and cleaning up.
OVERTIME = 2.0
# The resident memory of `get`, whatever a server sends to it, bytes.
MEMORY_OF_GET = 160 << 20
