package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/quic-go/quic-go"
)

// maxRequest is the longest request that is read, bytes.
const maxRequest = 8192

func serve(chosen *options) error {
	config, err := chosen.transportConfig("server", newTracer(chosen.qlog))
	if err != nil {
		return err
	}
	security, err := chosen.tlsConfig()
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(chosen.certificate, chosen.key)
	if err != nil {
		return err
	}
	security.Certificates = []tls.Certificate{certificate}
	address, err := net.ResolveUDPAddr("udp", chosen.listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	transport := &quic.Transport{Conn: socket}
	if err := chosen.applyTo(transport); err != nil {
		return err
	}
	if chosen.retry {
		transport.VerifySourceAddress = func(net.Addr) bool { return true }
	}
	// Early, so that 0-RTT requests are answered before the handshake is over.
	listener, err := transport.ListenEarly(security, config)
	if err != nil {
		return err
	}
	fmt.Println("listening on", chosen.listen)
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go handle(chosen, connection)
	}
}

func handle(chosen *options, connection *quic.Conn) {
	go func() {
		select {
		case <-connection.HandshakeComplete():
		case <-connection.Context().Done():
			return
		}
		state := connection.ConnectionState()
		fmt.Printf("connection, ALPN %s, version %x, resumed %t, 0-RTT %t\n", state.TLS.NegotiatedProtocol,
			uint32(state.Version), state.TLS.DidResume, state.Used0RTT)
		if err := checkSuite(chosen.suite, state.TLS); err != nil {
			connection.CloseWithError(1, err.Error())
		}
	}()
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			break
		}
		go answer(chosen.directory, stream)
	}
	// The reason is there once the connection's own end is over, which may be after this loop's.
	<-connection.Context().Done()
	fmt.Println("connection ended:", ending(context.Cause(connection.Context())))
}

// ending begins with the error code in hex where there is one.
func ending(cause error) string {
	var application *quic.ApplicationError
	var transport *quic.TransportError
	switch {
	case errors.As(cause, &application):
		return fmt.Sprintf("%#x %s", uint64(application.ErrorCode), application.ErrorMessage)
	case errors.As(cause, &transport):
		return fmt.Sprintf("%#x %s", uint64(transport.ErrorCode), transport.ErrorMessage)
	default:
		return fmt.Sprint(cause)
	}
}

func answer(directory string, stream *quic.Stream) {
	request, err := io.ReadAll(io.LimitReader(stream, maxRequest))
	if err != nil {
		return
	}
	fmt.Printf("request %q\n", request)
	file, err := requested(directory, string(request))
	if err != nil {
		stream.CancelWrite(notFound)
		stream.CancelRead(notFound)
		return
	}
	defer file.Close()
	// On an error the connection has ended, which its own loop reports.
	if _, err := io.Copy(stream, file); err == nil {
		stream.Close()
	}
}

func requested(directory, request string) (*os.File, error) {
	path, found := strings.CutPrefix(strings.TrimRight(request, "\r\n"), "GET /")
	if !found || !filepath.IsLocal(path) {
		return nil, errors.New("no such request")
	}
	return os.Open(filepath.Join(directory, path))
}
