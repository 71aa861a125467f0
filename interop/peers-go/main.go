// Command quic-go-peer is quic-go as a file server and as a downloader over hq-interop, and its http3 as
// server and client of the HTTP cases (`h3-server`, `h3-client`), and as proxy and client of UDP proxying
// (`masque-proxy`, `masque-client`) and for IP (`ip-proxy`, `ip-client`, with connect-ip-go).
//
// `server` runs until it is killed; `client` prints one JSON object about its connections and exits
// with 1 if anything went wrong. Both exit with 3, and a last line that begins with "unsupported:",
// if quic-go can't do what was asked. The options are those of the other peers.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
)

const exitUnsupported = 3

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errUnsupported) {
			os.Exit(exitUnsupported)
		}
		os.Exit(1)
	}
}

func run() error {
	roles := map[string]func(*options) error{
		"server": serve, "client": download, "h3-server": serveHTTP, "h3-client": runCase,
	}
	tunnels := map[string]func([]string) error{
		"masque-proxy": runMasqueProxy, "masque-client": runMasqueClient,
		"ip-proxy": runIPProxy, "ip-client": runIPClient,
	}
	if len(os.Args) > 1 && tunnels[os.Args[1]] != nil {
		return tunnels[os.Args[1]](os.Args[2:])
	}
	if len(os.Args) < 2 || roles[os.Args[1]] == nil {
		return errors.New("usage: quic-go-peer server|client|h3-server|h3-client|masque-proxy|masque-client|ip-proxy|ip-client [options]")
	}
	role := os.Args[1]
	chosen, err := parse(role, os.Args[2:])
	if err != nil {
		return err
	}
	return roles[role](chosen)
}

// fillRandom fills the bytes; crypto/rand never fails, and ends the program if it has to.
func fillRandom(bytes []byte) {
	rand.Read(bytes)
}
