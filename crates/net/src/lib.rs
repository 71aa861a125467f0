//! Drives swiftwater-quic over real UDP sockets; the real-time relay over swiftwater-link.
