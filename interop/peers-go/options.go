package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const alpn = "hq-interop"

// notFound is the stream error code for whatever can't be served.
const notFound = 404

// idle is the time without a packet after which either side gives up.
const idle = 30 * time.Second

// errUnsupported marks what this stack can't do at all: the harness reports it as such.
var errUnsupported = errors.New("unsupported")

func unsupported(format string, values ...any) error {
	return fmt.Errorf("%w: quic-go %s", errUnsupported, fmt.Sprintf(format, values...))
}

// options are the command line of both roles; the names are those of the other peers.
type options struct {
	directory, listen, certificate, key string
	output, authority                   string
	connect, httpCase                   string
	urls                                []string

	suite         string
	version       string
	preferV2      bool
	keyUpdate     bool
	retry         bool
	resume        bool
	zeroRTT       bool
	migrate       bool
	perConnection bool
	qlog          string
	keyLog        string
	window        uint64
	streams       int64
	cidLength     int
	maxPayload    uint
}

func parse(role string, arguments []string) (*options, error) {
	chosen := &options{suite: "any", cidLength: -1}
	flags := flag.NewFlagSet(role, flag.ExitOnError)
	switch role {
	case "h3-server":
		chosen.serverFlags(flags)
		chosen.keyLog = os.Getenv("SSLKEYLOGFILE")
		return chosen, flags.Parse(arguments)
	case "h3-client":
		flags.StringVar(&chosen.connect, "connect", "", "`host:port` of the server")
		flags.StringVar(&chosen.authority, "ca", "", "trusted certificates, PEM")
		flags.StringVar(&chosen.httpCase, "case", "", "`name` of what to do")
		chosen.keyLog = os.Getenv("SSLKEYLOGFILE")
		return chosen, flags.Parse(arguments)
	}
	if role == "server" {
		flags.StringVar(&chosen.directory, "dir", "", "`directory` whose files are served")
		chosen.serverFlags(flags)
		flags.BoolVar(&chosen.retry, "retry", false, "validate addresses with Retry")
	} else {
		flags.StringVar(&chosen.output, "out", "", "`directory` for the files")
		flags.StringVar(&chosen.authority, "ca", "", "trusted certificates, PEM")
		flags.BoolVar(&chosen.resume, "resume", false, "get the first file on a connection of its own, resume its session for the others")
		flags.BoolVar(&chosen.zeroRTT, "zero-rtt", false, "like --resume, with the requests in 0-RTT")
		flags.BoolVar(&chosen.migrate, "migrate", false, "move to another local address after 200 kB")
		flags.BoolVar(&chosen.perConnection, "per-connection", false, "a connection for each file, one after another")
	}
	flags.StringVar(&chosen.suite, "suite", "any", "`name` of the only cipher suite: any, aes128, aes256, chacha20")
	flags.StringVar(&chosen.version, "quic-version", "", "QUIC version as `hex`: the server's only one, the client's first")
	flags.BoolVar(&chosen.preferV2, "v2", false, "upgrade from version 1 to 2 within the handshake")
	flags.BoolVar(&chosen.keyUpdate, "key-update", false, "update keys again and again")
	flags.StringVar(&chosen.qlog, "qlog", "", "`directory` for qlog")
	flags.StringVar(&chosen.keyLog, "keylog", "", "`file` for the TLS secrets")
	flags.Uint64Var(&chosen.window, "window", 0, "receive window of each stream and of the connection, `bytes`")
	flags.Int64Var(&chosen.streams, "streams", 0, "`number` of streams that the peer may have open at a time")
	flags.IntVar(&chosen.cidLength, "cid-length", -1, "length of the own connection IDs, `bytes`")
	flags.UintVar(&chosen.maxPayload, "max-udp-payload", 0, "largest UDP payload, `bytes`")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	chosen.urls = flags.Args()
	if role == "client" && len(chosen.urls) == 0 {
		return nil, errors.New("no URL given")
	}
	return chosen, nil
}

// serverFlags are those of every server.
func (o *options) serverFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.listen, "listen", "", "`host:port` to listen on")
	flags.StringVar(&o.certificate, "cert", "", "certificate chain, PEM")
	flags.StringVar(&o.key, "key", "", "private key, PEM")
	flags.BoolVar(&o.zeroRTT, "zero-rtt", false, "accept 0-RTT")
}

// versions are what the transport may speak, the first one preferred.
func (o *options) versions(role string) ([]quic.Version, error) {
	if o.preferV2 {
		return nil, unsupported("has no compatible version negotiation (RFC 9368)")
	}
	if o.version == "" {
		return []quic.Version{quic.Version1}, nil
	}
	number, err := strconv.ParseUint(o.version, 16, 32)
	if err != nil {
		return nil, fmt.Errorf("--quic-version: %w", err)
	}
	version := quic.Version(number)
	switch {
	case version == quic.Version1, version == quic.Version2 && role == "server":
		return []quic.Version{version}, nil
	case version == quic.Version2:
		return []quic.Version{version, quic.Version1}, nil
	default:
		return nil, unsupported("speaks versions 1 and 2 only")
	}
}

func (o *options) transportConfig(role string, tracer *tracer) (*quic.Config, error) {
	versions, err := o.versions(role)
	if err != nil {
		return nil, err
	}
	if o.keyUpdate {
		setKeyUpdateInterval(packetsPerKey)
	}
	config := &quic.Config{
		Versions:             versions,
		HandshakeIdleTimeout: idle,
		MaxIdleTimeout:       idle,
		MaxIncomingStreams:   o.streams,
		Allow0RTT:            role == "server" && o.zeroRTT,
		Tracer:               tracer.connection,
	}
	if o.window > 0 {
		config.InitialStreamReceiveWindow = o.window
		config.MaxStreamReceiveWindow = o.window
		config.InitialConnectionReceiveWindow = o.window
		config.MaxConnectionReceiveWindow = o.window
	}
	if o.maxPayload > 0 {
		// Its own limit can't be announced; what it sends can be held to this.
		config.InitialPacketSize = uint16(min(max(o.maxPayload, 1200), 1452))
		config.DisablePathMTUDiscovery = true
	}
	return config, nil
}

// tlsConfig is what both roles share.
func (o *options) tlsConfig() (*tls.Config, error) {
	if err := chooseSuite(o.suite); err != nil {
		return nil, err
	}
	config := &tls.Config{NextProtos: []string{alpn}, MinVersion: tls.VersionTLS13}
	if o.keyLog != "" {
		file, err := os.OpenFile(o.keyLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		config.KeyLogWriter = io.Writer(file)
	}
	return config, nil
}

// generator makes random connection IDs of any length, zero included, which Transport's own option
// can't express.
type generator struct{ length int }

func (g generator) ConnectionIDLen() int { return g.length }

func (g generator) GenerateConnectionID() (quic.ConnectionID, error) {
	bytes := make([]byte, g.length)
	fillRandom(bytes)
	return quic.ConnectionIDFromBytes(bytes), nil
}

func (o *options) applyTo(transport *quic.Transport) error {
	if o.cidLength > 20 {
		return errors.New("--cid-length: at most 20")
	}
	if o.cidLength >= 0 {
		transport.ConnectionIDGenerator = generator{o.cidLength}
	}
	return nil
}
