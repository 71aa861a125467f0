package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// ticketWait is how long a session ticket may take after the first file.
	ticketWait = 3 * time.Second
	// migrateAfter is how much arrives before the client moves, bytes.
	migrateAfter = 200_000
	// probeTime is how long the validation of a new path may take.
	probeTime = 5 * time.Second
)

// report is what the harness reads.
type report struct {
	Files       int     `json:"files"`
	Bytes       int64   `json:"bytes"`
	HandshakeMs float64 `json:"handshake_ms"`
	Seconds     float64 `json:"seconds"`
	KeyUpdates  int     `json:"key_updates"`
	Connections int     `json:"connections"`
	Resumed     bool    `json:"resumed"`
	// Whether the server has taken the 0-RTT requests, if there were any.
	EarlyAccepted *bool  `json:"early_accepted"`
	Migrated      bool   `json:"migrated"`
	Version       string `json:"version"`
	ECN           string `json:"ecn"`
}

// sessions is the session cache of crypto/tls, and tells when a ticket has come.
type sessions struct {
	tls.ClientSessionCache
	came chan struct{}
	once sync.Once
}

func (s *sessions) Put(key string, state *tls.ClientSessionState) {
	s.ClientSessionCache.Put(key, state)
	s.once.Do(func() { close(s.came) })
}

// downloader holds what lasts longer than one connection.
type downloader struct {
	chosen   *options
	config   *quic.Config
	security *tls.Config
	sessions *sessions
	server   *net.UDPAddr
	received atomic.Int64
	report   report
}

func download(chosen *options) error {
	tracer := newTracer(chosen.qlog)
	d, err := newDownloader(chosen, tracer)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := d.all(); err != nil {
		return err
	}
	d.report.Seconds = time.Since(start).Seconds()
	d.report.Files = len(chosen.urls)
	d.report.Bytes = d.received.Load()
	d.report.KeyUpdates, d.report.ECN = tracer.counts()
	return json.NewEncoder(os.Stdout).Encode(d.report)
}

func newDownloader(chosen *options, tracer *tracer) (*downloader, error) {
	config, err := chosen.transportConfig("client", tracer)
	if err != nil {
		return nil, err
	}
	if !chosen.perConnection {
		config.TokenStore = quic.NewLRUTokenStore(1, 4)
	}
	security, err := chosen.tlsConfig()
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(chosen.authority)
	if err != nil {
		return nil, err
	}
	security.RootCAs = x509.NewCertPool()
	if !security.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", chosen.authority)
	}
	first, err := url.Parse(chosen.urls[0])
	if err != nil {
		return nil, err
	}
	security.ServerName = first.Hostname()
	cache := &sessions{ClientSessionCache: tls.NewLRUClientSessionCache(4), came: make(chan struct{})}
	if !chosen.perConnection {
		security.ClientSessionCache = cache
	}
	server, err := net.ResolveUDPAddr("udp", first.Host)
	if err != nil {
		return nil, err
	}
	return &downloader{chosen: chosen, config: config, security: security, sessions: cache, server: server}, nil
}

func (d *downloader) all() error {
	urls := d.chosen.urls
	switch {
	case d.chosen.perConnection:
		for _, each := range urls {
			if err := d.connection([]string{each}, false); err != nil {
				return err
			}
		}
		return nil
	case (d.chosen.resume || d.chosen.zeroRTT) && len(urls) > 1:
		if err := d.connection(urls[:1], true); err != nil {
			return err
		}
		return d.connection(urls[1:], false)
	default:
		return d.connection(urls, false)
	}
}

// transport is one on a new port of the address.
func (d *downloader) transport(local net.IP) (*quic.Transport, error) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: local})
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	return transport, d.chosen.applyTo(transport)
}

func (d *downloader) wildcard() net.IP {
	if d.server.IP.To4() == nil {
		return net.IPv6zero
	}
	return net.IPv4zero
}

// secondAddress is another address of the loopback network if the server is there, else any.
func (d *downloader) secondAddress() net.IP {
	if d.server.IP.To4() != nil && d.server.IP.IsLoopback() {
		return net.IPv4(127, 0, 0, 2)
	}
	return d.wildcard()
}

// connection gets files over one connection; with ticket it stays until the server has sent one.
func (d *downloader) connection(urls []string, ticket bool) error {
	transport, err := d.transport(d.wildcard())
	if err != nil {
		return err
	}
	defer transport.Close()
	dial := transport.Dial
	if d.chosen.zeroRTT {
		dial = transport.DialEarly
	}
	start := time.Now()
	connection, err := dial(context.Background(), d.server, d.security, d.config)
	if err != nil {
		return err
	}
	if !d.chosen.zeroRTT {
		d.report.HandshakeMs = time.Since(start).Seconds() * 1e3
	}
	moved := make(chan error, 1)
	if d.chosen.migrate {
		go func() { moved <- d.move(connection) }()
	}
	err = d.files(connection, urls)
	if errors.Is(err, quic.Err0RTTRejected) {
		// The requests are lost with the 0-RTT packets; they go out again.
		if connection, err = connection.NextConnection(context.Background()); err == nil {
			err = d.files(connection, urls)
		}
	}
	if err != nil {
		return err
	}
	if d.chosen.migrate {
		if err := <-moved; err != nil {
			return fmt.Errorf("migration: %w", err)
		}
		d.report.Migrated = true
	}
	if ticket {
		select {
		case <-d.sessions.came:
		case <-time.After(ticketWait):
			return errors.New("no session ticket came")
		}
	}
	return d.finish(connection, ticket)
}

func (d *downloader) finish(connection *quic.Conn, ticketOnly bool) error {
	// With 0-RTT the files can be here first.
	<-connection.HandshakeComplete()
	state := connection.ConnectionState()
	d.report.Connections++
	d.report.Resumed = state.TLS.DidResume
	if d.chosen.zeroRTT && !ticketOnly {
		d.report.EarlyAccepted = &state.Used0RTT
	}
	d.report.Version = fmt.Sprintf("%x", uint32(state.Version))
	if err := connection.CloseWithError(0, ""); err != nil {
		return err
	}
	return checkSuite(d.chosen.suite, state.TLS)
}

// files gets all files at once and returns the first error.
func (d *downloader) files(connection *quic.Conn, urls []string) error {
	results := make(chan error, len(urls))
	for _, each := range urls {
		go func() { results <- d.file(connection, each) }()
	}
	var first error
	for range urls {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (d *downloader) file(connection *quic.Conn, address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", parsed.Path); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	content, err := io.ReadAll(io.TeeReader(stream, counter{&d.received}))
	if err != nil {
		return fmt.Errorf("%s: %w", parsed.Path, err)
	}
	return os.WriteFile(filepath.Join(d.chosen.output, path.Base(parsed.Path)), content, 0o644)
}

// counter counts what is written to it.
type counter struct{ total *atomic.Int64 }

func (c counter) Write(bytes []byte) (int, error) {
	c.total.Add(int64(len(bytes)))
	return len(bytes), nil
}

// move takes the connection to another local address once some data is here: it validates the path there and
// switches to it.
func (d *downloader) move(connection *quic.Conn) error {
	for d.received.Load() < migrateAfter {
		select {
		case <-connection.Context().Done():
			return errors.New("the transfer ended before")
		case <-time.After(time.Millisecond):
		}
	}
	transport, err := d.transport(d.secondAddress())
	if err != nil {
		return err
	}
	way, err := connection.AddPath(transport)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	if err := way.Probe(limit); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "moved to", transport.Conn.LocalAddr())
	return way.Switch()
}
