package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const (
	// ipPath is the default template of IP proxying for all packets (RFC 9484, section 3).
	ipPath    = "/.well-known/masque/ip/*/*/"
	ipv4Bytes = 20
	udpBytes  = 8
	udpNumber = 17
	// packets between client and proxy that fit into one datagram from the start, bytes.
	ipContent = 1000
)

func ipTemplate(authority string) (*uritemplate.Template, error) {
	return uritemplate.New("https://" + authority + ipPath)
}

// runIPProxy answers each UDP packet of a tunnel with the same content, until it is killed.
func runIPProxy(arguments []string) error {
	flags := flag.NewFlagSet("ip-proxy", flag.ContinueOnError)
	listen := flags.String("listen", "", "address")
	cert := flags.String("cert", "", "certificate, PEM")
	key := flags.String("key", "", "private key, PEM")
	assigned := flags.String("assign", "", "prefix of the client")
	route := flags.String("route", "", "prefix that is advertised")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	client, err := netip.ParsePrefix(*assigned)
	if err != nil {
		return err
	}
	network, err := netip.ParsePrefix(*route)
	if err != nil {
		return err
	}
	template, err := ipTemplate(*listen)
	if err != nil {
		return err
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		request, err := connectip.ParseProxyRequest(r, template)
		if err != nil {
			fmt.Println("refused:", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		tunnel, err := new(connectip.Proxy).Proxy(w, request)
		if err != nil {
			return
		}
		defer tunnel.Close()
		fmt.Println("tunnel", echoPackets(tunnel, client, network))
	}
	server := http3.Server{
		Addr:            *listen,
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      masqueConfig(),
		EnableDatagrams: true,
		Handler:         http.HandlerFunc(handler),
	}
	fmt.Println("listening on", *listen)
	return server.ListenAndServe()
}

// echoPackets sends UDP over IPv4 back to where it came from, until the tunnel ends.
func echoPackets(tunnel *connectip.Conn, client, network netip.Prefix) error {
	if err := tunnel.AssignAddresses([]netip.Prefix{client}); err != nil {
		return err
	}
	last := lastOf(network)
	routes := []connectip.IPRoute{{StartIP: network.Addr(), EndIP: last}}
	if err := tunnel.AdvertiseRoute(routes); err != nil {
		return err
	}
	buffer := make([]byte, maxUDP)
	for {
		n, err := tunnel.ReadPacket(buffer)
		if err != nil {
			return err
		}
		packet := buffer[:n]
		if n < ipv4Bytes+udpBytes || packet[0] != 0x45 || packet[9] != udpNumber {
			continue
		}
		// Neither checksum changes by that.
		swap(packet[12:16], packet[16:20])
		swap(packet[20:22], packet[22:24])
		// What is too large is dropped.
		_, _ = tunnel.WritePacket(packet)
	}
}

func swap(a, b []byte) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}

func lastOf(prefix netip.Prefix) netip.Addr {
	last := prefix.Addr().As4()
	number := binary.BigEndian.Uint32(last[:]) | (1<<(32-prefix.Bits()) - 1)
	binary.BigEndian.PutUint32(last[:], number)
	return netip.AddrFrom4(last)
}

// runIPClient sends UDP in IP packets to a target that sends it back, and prints what came of it.
func runIPClient(arguments []string) error {
	flags := flag.NewFlagSet("ip-client", flag.ContinueOnError)
	proxy := flags.String("connect", "", "address of the proxy")
	ca := flags.String("ca", "", "certificate that is trusted, PEM")
	target := flags.String("target", "", "address of the target, IPv4")
	token := flags.String("token", os.Getenv("TOKEN"), "token of the user")
	count := flags.Int("count", 100, "packets")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(*target)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	security := &tls.Config{RootCAs: roots, ServerName: serverName, NextProtos: []string{http3.NextProtoH3}}
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()
	connection, err := quic.DialAddr(ctx, *proxy, security, masqueConfig())
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	transport := http3.Transport{EnableDatagrams: true}
	template, err := ipTemplate(*proxy)
	if err != nil {
		return err
	}
	request, err := connectip.NewRequest(ctx, template)
	if err != nil {
		return err
	}
	request.Header().Set("Proxy-Authorization", "Bearer "+*token)
	tunnel, response, err := connectip.NewClientConn(transport.NewClientConn(connection)).Dial(request)
	if response != nil && response.StatusCode != http.StatusOK {
		return print(table{"status": response.StatusCode, "proxy_status": response.Header.Get("Proxy-Status")})
	}
	if err != nil {
		return err
	}
	defer tunnel.Close()
	from, err := ownIPv4(ctx, tunnel)
	if err != nil {
		return err
	}
	if _, err := tunnel.Routes(ctx); err != nil {
		return err
	}
	same, err := exchangePackets(tunnel, netip.AddrPortFrom(from, 4000), to, *count)
	if err != nil {
		return err
	}
	return print(table{"status": response.StatusCode, "address": from.String(), "same": same})
}

func ownIPv4(ctx context.Context, tunnel *connectip.Conn) (netip.Addr, error) {
	for {
		assignment, err := tunnel.ReceiveAddressAssignment(ctx)
		if err != nil {
			return netip.Addr{}, err
		}
		for _, assigned := range assignment {
			if !assigned.Rejected() && assigned.IPPrefix.Addr().Is4() {
				return assigned.IPPrefix.Addr(), nil
			}
		}
	}
}

// exchangePackets counts the packets that come back with the same content, each sent until it does.
func exchangePackets(tunnel *connectip.Conn, from, to netip.AddrPort, count int) (int, error) {
	answers := make(chan [sha256.Size]byte, count)
	go func() {
		buffer := make([]byte, maxUDP)
		for {
			n, err := tunnel.ReadPacket(buffer)
			if err != nil {
				close(answers)
				return
			}
			packet := buffer[:n]
			source := to.Addr().As4()
			if n > ipv4Bytes+udpBytes && packet[9] == udpNumber && bytes.Equal(packet[12:16], source[:]) {
				answers <- sha256.Sum256(packet[ipv4Bytes+udpBytes:])
			}
		}
	}()
	same := 0
	for range count {
		content := make([]byte, ipContent)
		if _, err := rand.Read(content); err != nil {
			return same, err
		}
		expected := sha256.Sum256(content)
		for range 10 {
			if _, err := tunnel.WritePacket(udpPacket(from, to, content)); err != nil {
				return same, err
			}
			select {
			case answer, open := <-answers:
				if !open {
					return same, errors.New("the tunnel ended")
				}
				if answer != expected {
					continue
				}
				same++
			case <-time.After(patience / 10):
				continue
			}
			break
		}
	}
	return same, nil
}

// udpPacket is UDP over IPv4, without a checksum of UDP.
func udpPacket(from, to netip.AddrPort, content []byte) []byte {
	packet := make([]byte, ipv4Bytes+udpBytes, ipv4Bytes+udpBytes+len(content))
	packet[0] = 0x45
	binary.BigEndian.PutUint16(packet[2:], uint16(cap(packet)))
	packet[8], packet[9] = 64, udpNumber
	source, destination := from.Addr().As4(), to.Addr().As4()
	copy(packet[12:], source[:])
	copy(packet[16:], destination[:])
	sum := uint32(0)
	for i := 0; i < ipv4Bytes; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum))
	binary.BigEndian.PutUint16(packet[20:], from.Port())
	binary.BigEndian.PutUint16(packet[22:], to.Port())
	binary.BigEndian.PutUint16(packet[24:], uint16(udpBytes+len(content)))
	return append(packet, content...)
}

func print(report table) error {
	return json.NewEncoder(os.Stdout).Encode(report)
}
