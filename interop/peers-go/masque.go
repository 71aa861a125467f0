package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

const (
	wellKnown  = "/.well-known/masque/udp/"
	connectUDP = "connect-udp"
	// udpContext is the context of UDP payloads (RFC 9298, section 4).
	udpContext = 0
	// patience is how long an answer may take.
	patience = 5 * time.Second
	// firstPacket carries the first packets of QUIC within datagrams, bytes.
	firstPacket = 1252
	maxUDP      = 65527
)

func masqueConfig() *quic.Config {
	return &quic.Config{EnableDatagrams: true, InitialPacketSize: firstPacket, MaxIdleTimeout: 30 * time.Second}
}

// inContext is a UDP payload as an HTTP datagram.
func inContext(payload []byte) []byte {
	return append(quicvarint.Append(nil, udpContext), payload...)
}

// payloadOf returns the UDP payload of an HTTP datagram; false in other contexts.
func payloadOf(datagram []byte) ([]byte, bool) {
	context, n, err := quicvarint.Parse(datagram)
	if err != nil || context != udpContext {
		return nil, false
	}
	return datagram[n:], true
}

// runMasqueProxy forwards to any target until it is killed.
func runMasqueProxy(arguments []string) error {
	flags := flag.NewFlagSet("masque-proxy", flag.ContinueOnError)
	listen := flags.String("listen", "", "address")
	cert := flags.String("cert", "", "certificate, PEM")
	key := flags.String("key", "", "private key, PEM")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	server := http3.Server{
		Addr:            *listen,
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      masqueConfig(),
		EnableDatagrams: true,
		Handler:         http.HandlerFunc(proxyUDP),
	}
	fmt.Println("listening on", *listen)
	return server.ListenAndServe()
}

// proxyUDP serves one tunnel.
func proxyUDP(w http.ResponseWriter, r *http.Request) {
	place, ok := strings.CutPrefix(r.URL.EscapedPath(), wellKnown)
	parts := strings.Split(strings.TrimSuffix(place, "/"), "/")
	if r.Method != http.MethodConnect || r.Proto != connectUDP || !ok || len(parts) != 2 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	host, err := url.PathUnescape(parts[0])
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	target, err := net.Dial("udp", net.JoinHostPort(host, parts[1]))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer target.Close()
	w.Header().Set(http3.CapsuleProtocolHeader, "?1")
	w.WriteHeader(http.StatusOK)
	stream, err := w.(http3.HTTPStreamer).HTTPStream()
	if err != nil {
		return
	}
	fmt.Println("tunnel to", host, parts[1])
	go func() {
		buffer := make([]byte, maxUDP)
		for {
			n, err := target.Read(buffer)
			if err != nil {
				return
			}
			// What is too large is dropped.
			_ = stream.SendDatagram(inContext(buffer[:n]))
		}
	}()
	go func() {
		for {
			datagram, err := stream.ReceiveDatagram(r.Context())
			if err != nil {
				return
			}
			if payload, ok := payloadOf(datagram); ok {
				_, _ = target.Write(payload)
			}
		}
	}()
	// Capsules have nothing to say here; the end of the stream is the end of the tunnel.
	capsules := http3.NewCapsuleParser(stream)
	for {
		_, content, err := capsules.Next()
		if err != nil || content.Discard() != nil {
			stream.Close()
			return
		}
	}
}

// runMasqueClient sends datagrams to a target that sends them back, and prints what came of it.
func runMasqueClient(arguments []string) error {
	flags := flag.NewFlagSet("masque-client", flag.ContinueOnError)
	proxy := flags.String("connect", "", "address of the proxy")
	ca := flags.String("ca", "", "certificate that is trusted, PEM")
	target := flags.String("target", "", "address of the target")
	token := flags.String("token", os.Getenv("TOKEN"), "token of the user")
	count := flags.Int("count", 100, "datagrams")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pem, err := os.ReadFile(*ca)
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
	client := transport.NewClientConn(connection)
	select {
	case <-client.ReceivedSettings():
	case <-ctx.Done():
		return ctx.Err()
	}
	if settings := client.Settings(); !settings.EnableExtendedConnect || !settings.EnableDatagrams {
		return errors.New("the proxy has no extended CONNECT or no datagrams")
	}
	host, port, err := net.SplitHostPort(*target)
	if err != nil {
		return err
	}
	address, err := url.Parse("https://" + *proxy + wellKnown + url.PathEscape(host) + "/" + port + "/")
	if err != nil {
		return err
	}
	header := http.Header{http3.CapsuleProtocolHeader: []string{"?1"}}
	if *token != "" {
		header.Set("Proxy-Authorization", "Bearer "+*token)
	}
	request := &http.Request{
		Method: http.MethodConnect, Proto: connectUDP, Host: *proxy, URL: address, Header: header,
	}
	stream, err := client.OpenRequestStream(ctx)
	if err != nil {
		return err
	}
	if err := stream.SendRequestHeader(request); err != nil {
		return err
	}
	response, err := stream.ReadResponse()
	if err != nil {
		return err
	}
	report := table{"status": response.StatusCode, "proxy_status": response.Header.Get("Proxy-Status")}
	sent, same := 0, 0
	if response.StatusCode == http.StatusOK {
		sent, same, err = echoes(ctx, stream, *count)
		stream.Close()
	}
	report["sent"], report["same"] = sent, same
	line, _ := json.Marshal(report)
	fmt.Println(string(line))
	if err == nil && (response.StatusCode != http.StatusOK || same != sent) {
		err = errors.New("not all datagrams came back as they were sent")
	}
	return err
}

// echoes sends datagrams one after the other and compares what comes back.
func echoes(ctx context.Context, stream *http3.RequestStream, count int) (sent, same int, err error) {
	for number := range count {
		digest := sha256.Sum256(fmt.Append(nil, number))
		payload := bytes.Repeat(digest[:], 1+number%37)
		if err := stream.SendDatagram(inContext(payload)); err != nil {
			return sent, same, err
		}
		sent++
		waiting, cancel := context.WithTimeout(ctx, patience)
		datagram, err := stream.ReceiveDatagram(waiting)
		cancel()
		if err != nil {
			return sent, same, err
		}
		if received, ok := payloadOf(datagram); ok && bytes.Equal(received, payload) {
			same++
		}
	}
	return sent, same, nil
}
