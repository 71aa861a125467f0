//! Settings of the connections that carry tunnels.

use std::time::Duration;

use swiftwater_net::quic::TransportConfig;

/// UDP payload of packets before the path's limit is known, bytes: a packet of this size carries the 1200 bytes of
/// a QUIC client's first packet (RFC 9000, section 14.1) with connection IDs of up to 20 bytes. Paths for IPv6
/// carry it with the smallest MTU of 1300 bytes.
const INITIAL_DATAGRAM_SIZE: u16 = 1252;

/// What a connection within a tunnel adds to each packet, bytes: its headers and those of the tunnel.
const NESTED_HEADERS: u16 = INITIAL_DATAGRAM_SIZE - 1200;

/// How often a client says that it is there: tunnels may be silent for longer than connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Makes the first packets of QUIC fit into tunnels, at both ends. A server adopts the size of a client that needs more
/// ([`fit_nested_packets`]), up to the bound of its search for larger datagrams.
pub fn fit_initial_packets(transport: &mut TransportConfig) {
    let size = &mut transport.initial_max_datagram_size;
    *size = (*size).max(INITIAL_DATAGRAM_SIZE);
    transport.adopt_client_datagram_size = true;
}

/// The same, and keeps the connection open while tunnels are silent: for clients.
pub fn for_client(transport: &mut TransportConfig) {
    fit_initial_packets(transport);
    transport.keep_alive_interval.get_or_insert(KEEP_ALIVE);
}

/// Makes the packets of `nested` connections of QUIC, one within the other, fit into tunnels of a client's connection: one
/// needs the size of [`fit_initial_packets`], and each further one adds 52 bytes, the headers of a connection and a tunnel. The path must
/// carry that much: five of them need 1460 bytes. Initial packets are as large, so that the proxy knows what it must send.
pub fn fit_nested_packets(transport: &mut TransportConfig, nested: u16) {
    let further = nested.saturating_sub(1);
    let wanted = INITIAL_DATAGRAM_SIZE.saturating_add(further.saturating_mul(NESTED_HEADERS));
    let size = &mut transport.initial_max_datagram_size;
    *size = (*size).max(wanted);
    if nested > 1 {
        transport.initial_padding = transport.initial_padding.max(wanted);
    }
}
