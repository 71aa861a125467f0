package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// pieceSize is that of the endless content, bytes.
const pieceSize = 16 << 10

// serveHTTP answers the requests of the HTTP cases.
func serveHTTP(chosen *options) error {
	config, err := chosen.transportConfig("server", newTracer(""))
	if err != nil {
		return err
	}
	config.Allow0RTT = chosen.zeroRTT
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
	server := &http3.Server{TLSConfig: security, QUICConfig: config, ConnContext: watch}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(server, w, r) })
	fmt.Println("listening on", chosen.listen)
	err = server.Serve(socket)
	if errors.Is(err, http.ErrServerClosed) {
		// Going away; those who are here stay until they are done.
		select {}
	}
	return err
}

// watch tells how a connection ended.
func watch(ctx context.Context, connection *quic.Conn) context.Context {
	go func() {
		<-connection.Context().Done()
		fmt.Println("connection ended:", ending(context.Cause(connection.Context())))
	}()
	return ctx
}

func respond(server *http3.Server, w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	fmt.Println("request", r.Method, path)
	switch size, isBytes := askedSize(path); {
	case r.Method == http.MethodGet && path == "/headers":
		headers(w, r)
	case r.Method == http.MethodGet && path == "/slow":
		endless(w)
	case r.Method == http.MethodGet && path == "/goaway":
		go server.Shutdown(context.Background())
		io.WriteString(w, "going")
	case r.Method == http.MethodPost && (path == "/echo" || path == "/trailers"):
		echo(w, r)
	case r.Method == http.MethodGet && isBytes:
		w.Write(pattern(size))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// echo sends back what comes, as it comes.
func echo(w http.ResponseWriter, r *http.Request) {
	flusher := w.(http.Flusher)
	w.WriteHeader(http.StatusOK)
	flusher.Flush()
	block := make([]byte, pieceSize)
	for {
		size, err := r.Body.Read(block)
		if size > 0 {
			w.Write(block[:size])
			flusher.Flush()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	for name, values := range r.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
}

// endless sends until nobody wants more, and says why.
func endless(w http.ResponseWriter) {
	piece := make([]byte, pieceSize)
	for {
		if _, err := w.Write(piece); err != nil {
			var stopped *http3.Error
			if errors.As(err, &stopped) {
				fmt.Printf("cancelled %#x\n", uint64(stopped.ErrorCode))
			} else {
				fmt.Println("writing failed:", err)
			}
			panic(http.ErrAbortHandler)
		}
	}
}

func headers(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(r.Header.Get("X-Size"))
	turn, errTurn := strconv.Atoi(r.Header.Get("X-Turn"))
	if err != nil || errTurn != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	count := countSmall(r.Header)
	w.Header().Set("X-Large", letters(size))
	w.Header().Set("X-Digest", strconv.FormatUint(uint64(checksum([]byte(r.Header.Get("X-Large")))), 10))
	w.Header().Set("X-Count", strconv.Itoa(count))
	addSmall(w.Header(), count, turn)
	w.WriteHeader(http.StatusOK)
}
