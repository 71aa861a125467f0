package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	serverName = "localhost"
	// soon is how long what follows a response may take: GOAWAY, a session ticket.
	soon = 500 * time.Millisecond
	// closeTime is how long the server may take to close when all is done.
	closeTime = 3 * time.Second
)

// outcome is what came of a request.
type outcome struct {
	Path    string `json:"path,omitempty"`
	Status  int    `json:"status"`
	Bytes   int    `json:"bytes"`
	CRC     uint32 `json:"crc"`
	Trailer string `json:"trailer,omitempty"`
	Turns   int    `json:"turns,omitempty"`
}

type table = map[string]any

// httpClient makes connections.
type httpClient struct {
	transport *quic.Transport
	security  *tls.Config
	config    *quic.Config
	server    net.Addr
	dial      func(context.Context, net.Addr, *tls.Config, *quic.Config) (*quic.Conn, error)
}

// visit is one connection.
type visit struct {
	quic *quic.Conn
	http *http3.ClientConn
}

// runCase runs a case and prints what came of it.
func runCase(chosen *options) error {
	client, err := newHTTPClient(chosen)
	if err != nil {
		return err
	}
	var told any
	if chosen.httpCase == "zerortt" {
		told, err = client.zeroRTT()
	} else {
		var v *visit
		if v, err = client.visit(); err == nil {
			told, err = v.run(chosen.httpCase)
			v.close()
		}
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

func newHTTPClient(chosen *options) (*httpClient, error) {
	config, err := chosen.transportConfig("client", newTracer(""))
	if err != nil {
		return nil, err
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
	security.ServerName = serverName
	security.NextProtos = []string{http3.NextProtoH3}
	server, err := net.ResolveUDPAddr("udp", chosen.connect)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{})
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	client := &httpClient{transport: transport, security: security, config: config, server: server, dial: transport.Dial}
	if chosen.httpCase == "zerortt" {
		security.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		client.dial = transport.DialEarly
	}
	return client, nil
}

func (c *httpClient) visit() (*visit, error) {
	connection, err := c.dial(context.Background(), c.server, c.security, c.config)
	if err != nil {
		return nil, err
	}
	transport := &http3.Transport{DisableCompression: true}
	return &visit{connection, transport.NewClientConn(connection)}, nil
}

func (c *httpClient) zeroRTT() (any, error) {
	first, err := c.visit()
	if err != nil {
		return nil, err
	}
	one, err := first.get("/bytes/1000")
	if err != nil {
		return nil, err
	}
	time.Sleep(soon)
	first.close()
	second, err := c.visit()
	if err != nil {
		return nil, err
	}
	two, err := second.request(http3.MethodGet0RTT, "/bytes/2000", nil)
	if err != nil {
		return nil, err
	}
	<-second.quic.HandshakeComplete()
	accepted := second.quic.ConnectionState().Used0RTT
	second.close()
	return table{"responses": []*outcome{one, two}, "early_accepted": accepted}, nil
}

// close gives the last packets time to leave.
func (v *visit) close() {
	v.http.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

func (v *visit) run(name string) (any, error) {
	switch name {
	case "get":
		answers := []*outcome{}
		for _, path := range gets {
			one, err := v.get(path)
			if err != nil {
				return nil, err
			}
			answers = append(answers, one)
		}
		return table{"responses": answers}, nil
	case "parallel":
		return v.parallel()
	case "post":
		return v.post()
	case "headers":
		return v.headers()
	case "trailers":
		return v.trailers()
	case "cancel":
		return v.cancel()
	case "goaway":
		return v.goAway()
	default:
		return nil, fmt.Errorf("no case %q", name)
	}
}

func newRequest(method, path string, body io.Reader) *http.Request {
	request, err := http.NewRequest(method, "https://"+serverName+path, body)
	if err != nil {
		panic(err) // The parts are this program's own.
	}
	return request
}

func (v *visit) get(path string) (*outcome, error) { return v.request(http.MethodGet, path, nil) }

func (v *visit) request(method, path string, body io.Reader) (*outcome, error) {
	response, err := v.http.RoundTrip(newRequest(method, path, body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &outcome{Path: path, Status: response.StatusCode, Bytes: len(content), CRC: checksum(content)}, nil
}

// parallel sends a thousand requests at the same time.
func (v *visit) parallel() (any, error) {
	type result struct {
		outcome *outcome
		err     error
	}
	results := make(chan result, parallelRequests)
	for nth := range parallelRequests {
		go func() {
			one, err := v.get(fmt.Sprintf("/bytes/%d", nth))
			results <- result{one, err}
		}()
	}
	good, bytes, sum := 0, 0, uint32(0)
	for range parallelRequests {
		one := <-results
		if one.err != nil {
			return nil, one.err
		}
		if one.outcome.Status == http.StatusOK {
			good++
		}
		bytes += one.outcome.Bytes
		sum ^= one.outcome.CRC
	}
	return table{"good": good, "bytes": bytes, "crc": sum}, nil
}

// exchange is a request with content whose response is being read.
type exchange struct {
	response *http.Response
	send     *io.PipeWriter
	answer   outcome
}

func (v *visit) exchange(path string, trailer http.Header) (*exchange, error) {
	content, send := io.Pipe()
	request := newRequest(http.MethodPost, path, content)
	request.Trailer = trailer
	response, err := v.http.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	return &exchange{response, send, outcome{Status: response.StatusCode}}, nil
}

// turn sends a piece and waits until everything sent so far has come back.
func (e *exchange) turn(piece []byte) error {
	if _, err := e.send.Write(piece); err != nil {
		return err
	}
	return e.read(len(piece))
}

func (e *exchange) read(size int) error {
	block := make([]byte, size)
	got, err := io.ReadFull(e.response.Body, block)
	e.take(block[:got])
	return err
}

func (e *exchange) take(block []byte) {
	e.answer.Bytes += len(block)
	e.answer.CRC = crc32.Update(e.answer.CRC, crc32.IEEETable, block)
}

// end ends the request and reads the rest of the response.
func (e *exchange) end() (*outcome, error) {
	e.send.Close()
	rest, err := io.ReadAll(e.response.Body)
	e.take(rest)
	e.answer.Trailer = e.response.Trailer.Get("X-Trailer")
	return &e.answer, err
}

// post sends each piece after the one before has come back.
func (v *visit) post() (any, error) {
	e, err := v.exchange("/echo", nil)
	if err != nil {
		return nil, err
	}
	data := pattern(turns * turnSize)
	for turn := range turns {
		if err := e.turn(data[turn*turnSize : (turn+1)*turnSize]); err != nil {
			return nil, err
		}
	}
	e.answer.Turns = turns
	return e.end()
}

func (v *visit) trailers() (any, error) {
	e, err := v.exchange("/trailers", http.Header{"X-Trailer": {trailerValue}})
	if err != nil {
		return nil, err
	}
	if err := e.turn(pattern(turnSize)); err != nil {
		return nil, err
	}
	return e.end()
}

func (v *visit) headers() (any, error) {
	answers := []table{}
	for turn := range headerTurns {
		request := newRequest(http.MethodGet, "/headers", nil)
		request.Header.Set("X-Size", fmt.Sprint(largeSize))
		request.Header.Set("X-Turn", fmt.Sprint(turn))
		request.Header.Set("X-Large", letters(largeSize))
		addSmall(request.Header, smallCount, turn)
		response, err := v.http.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			return nil, err
		}
		large := response.Header.Get("X-Large")
		answers = append(answers, table{
			"status":    response.StatusCode,
			"digest":    response.Header.Get("X-Digest"),
			"count":     response.Header.Get("X-Count"),
			"large":     len(large),
			"large_crc": checksum([]byte(large)),
			"small":     countSmall(response.Header),
			"last":      response.Header.Get(fmt.Sprintf("%s%d", smallPrefix, smallCount-1)),
		})
	}
	return table{"responses": answers}, nil
}

// cancel gives up an endless response, and goes on.
func (v *visit) cancel() (any, error) {
	response, err := v.http.RoundTrip(newRequest(http.MethodGet, "/slow", nil))
	if err != nil {
		return nil, err
	}
	read, err := io.CopyN(io.Discard, response.Body, cancelAfter)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	after, err := v.get("/bytes/10000")
	return table{"read": read, "after": after}, err
}

// goAway lets the server go away while a request is under way: it finishes, and no other is sent.
func (v *visit) goAway() (any, error) {
	e, err := v.exchange("/echo", nil)
	if err != nil {
		return nil, err
	}
	data := pattern(2 * turnSize)
	if err := e.turn(data[:turnSize]); err != nil {
		return nil, err
	}
	asked, err := v.get("/goaway")
	if err != nil {
		return nil, err
	}
	time.Sleep(soon)
	_, err = v.get("/bytes/1")
	refused := err != nil && strings.Contains(err.Error(), "graceful shutdown")
	if err != nil && !refused {
		return nil, err
	}
	if err := e.turn(data[turnSize:]); err != nil {
		return nil, err
	}
	echoed, err := e.end()
	if err != nil {
		return nil, err
	}
	closed := any(nil)
	select {
	case <-v.quic.Context().Done():
		closed = ending(context.Cause(v.quic.Context()))
	case <-time.After(closeTime):
		return nil, errors.New("the connection stays open")
	}
	return table{"echo": echoed, "goaway": asked.Status, "refused": refused, "closed": closed}, nil
}
