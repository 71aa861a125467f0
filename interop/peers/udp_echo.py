#!/usr/bin/env python3
"""UDP that comes back: `serve ADDRESS PORT` sends everything back until it is killed, `check ADDRESS PORT` sends 100
datagrams of random content, each again until it is back, and prints how many came back unchanged as JSON."""

import hashlib
import json
import os
import socket
import sys

COUNT, SIZE, ATTEMPTS, PATIENCE = 100, 1000, 20, 0.5


def serve(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target:
        target.bind((address, port))
        print("ready", flush=True)
        while True:
            data, peer = target.recvfrom(65535)
            target.sendto(data, peer)


def check(address, port):
    same = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((address, port))
        sender.settimeout(PATIENCE)
        for _ in range(COUNT):
            content = os.urandom(SIZE)
            expected = hashlib.sha256(content).digest()
            for _ in range(ATTEMPTS):
                sender.send(content)
                try:
                    if hashlib.sha256(sender.recv(65535)).digest() == expected:
                        same += 1
                        break
                except TimeoutError:
                    pass
    print(json.dumps({"same": same}))


if __name__ == "__main__":
    {"serve": serve, "check": check}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
