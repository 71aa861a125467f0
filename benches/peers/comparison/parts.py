"""Which part of the work a function belongs to, by its name."""

import re
from collections import Counter

# The first match is used. `k` are functions of the kernel, which a profile distinguishes.
RULES = [
    ("kernel: copies", "k", r"copy_(from|to)_iter|copy_user|rep_movs|memcpy|skb_copy"),
    ("kernel: waiting and waking", "k",
     r"sched|switch|wake|epoll|ep_|futex|poll_|hrtimer|timer|idle|irqentry|exit_to_user|pick_|enqueue_task|"
     r"dequeue_task|update_curr|update_load|psi_|ttwu|select_task|clockevents|tick_"),
    ("kernel: sockets", "k", r""),
    ("null cipher", "", r"tls::null"),
    ("header protection", "", r"HeaderProtection|MaskKey|aes_hw_encrypt$|AES_encrypt|AES_ecb|cipher_new_mask|new_mask"),
    ("AEAD", "", r"aws_lc|gcm|aead|EVP_|CRYPTO_|init_IV|rustls|AeadKey|chacha(?!.*guts)|poly1305|Protection"),
    ("the comparison's own", "", r"crc32|budget::|peers_job|job::|swiftwater::(client|server|streams|requests|hosted)"),
    ("memory copies", "", r"mem(move|cpy|set)"),
    ("acknowledgements", "",
     r"connection::acks|space::|ledger|Ledger|RangeSet|write_ack|frame::ack|AckRanges|ack_frequency|policy::ack"),
    ("loss recovery and congestion control", "",
     r"recovery|congestion|Congestion|LossBased|Bbr|Cubic|connection::timers|connection::lifecycle|pacer"),
    ("streams", "", r"quic::streams|connection::application|stream::"),
    ("packets in", "",
     r"connection::receive|quic::reception|connection::frames|frame::decode|header::parse|Reader|endpoint|Routes|"
     r"routing|quic::path"),
    ("packets out", "",
     r"connection::transmit|quic::transmission|header::encode|frame::encode|Writer|frame_writer|FrameWriter|"
     r"quic::control|Spin|packet_number|datagrams|rand_chacha|RandomBits"),
    ("rest of the protocol", "", r"swiftwater_quic|swiftwater_wire|VecDeque|hashbrown|core::hash|BTree"),
    ("driver", "", r"swiftwater_net|quinn_udp|recvmmsg|sendmsg|recvmsg|syscall"),
    ("runtime", "", r"tokio|mio|clock_gettime|pthread|futex|parking_lot|std::time|epoll"),
    ("allocator", "", r"malloc|free|realloc|calloc|_int_|alloc::"),
]
REST = "rest"
PATTERNS = [(part, where, re.compile(pattern)) for part, where, pattern in RULES]
PARTS = [part for part, _, _ in RULES] + [REST]


def part_of(name, in_kernel=False):
    """The part that a function belongs to."""
    for part, where, pattern in PATTERNS:
        if in_kernel == (where == "k") and pattern.search(name):
            return part
    return REST


def add_up(functions):
    """Sums by part of `(name, in_kernel, cost)`."""
    sums = Counter()
    for name, in_kernel, cost in functions:
        sums[part_of(name, in_kernel)] += cost
    return sums
