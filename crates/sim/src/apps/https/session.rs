//! One end of a TLS 1.3 connection, without cryptography: flights of the handshake with their sizes,
//! then records.
//!
//! A flight is its number, a flag and its length, then zeros. The client may send with its second
//! flight, a round trip after the first; the server answers requests once it has that.

use super::record::{self, APPLICATION, HANDSHAKE, Reader};

/// Number, flag and length of a flight.
const FLIGHT_HEAD: usize = 6;

const CLIENT_HELLO: u8 = 1;
const SERVER_FLIGHT: u8 = 2;
const CLIENT_FINISHED: u8 = 3;
const TICKETS: u8 = 4;

/// Sizes of the flights, bytes without the headers of records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TlsSizes {
    /// ClientHello. Default 1750: with a key share of X25519MLKEM768, as browsers send it.
    pub client_hello: usize,
    /// What resumption adds to it: ticket and binder. Default 270.
    pub ticket_offer: usize,
    /// ServerHello to Finished, in a full handshake. Default 4600: a key share of 1120 bytes, two
    /// certificates of 1500 in all, a transparency log and a signature.
    pub server_flight: usize,
    /// The same in a resumption, without certificates. Default 1400.
    pub resumed_server_flight: usize,
    /// The client's Finished. Default 36, and 6 of the compatibility record.
    pub client_finished: usize,
    /// Session tickets after the handshake. Default 500, two of them.
    pub tickets: usize,
}

impl Default for TlsSizes {
    fn default() -> Self {
        Self {
            client_hello: 1750,
            ticket_offer: 270,
            server_flight: 4600,
            resumed_server_flight: 1400,
            client_finished: 42,
            tickets: 500,
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct TlsSession {
    sizes: TlsSizes,
    is_client: bool,
    is_ready: bool,
    has_ticket: bool,
    reader: Reader,
    flight: Vec<u8>,
    /// Bytes for the TCP connection.
    outgoing: Vec<u8>,
    /// Plaintext that arrived.
    plaintext: Vec<u8>,
}

impl TlsSession {
    /// A client, whose first flight is to be sent; `resumes` is whether it has a ticket.
    pub(super) fn client(sizes: TlsSizes, resumes: bool) -> Self {
        let mut session = Self::new(sizes, true);
        let offer = if resumes { sizes.ticket_offer } else { 0 };
        session.send_flight(CLIENT_HELLO, resumes, sizes.client_hello + offer);
        session
    }

    /// A server.
    pub(super) fn server(sizes: TlsSizes) -> Self {
        Self::new(sizes, false)
    }

    fn new(sizes: TlsSizes, is_client: bool) -> Self {
        Self {
            sizes,
            is_client,
            is_ready: false,
            has_ticket: false,
            reader: Reader::default(),
            flight: Vec::new(),
            outgoing: Vec::new(),
            plaintext: Vec::new(),
        }
    }

    /// Whether plaintext may be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether a client has got a ticket.
    pub(super) fn has_ticket(&self) -> bool {
        self.has_ticket
    }

    /// Bytes arrived on the TCP connection.
    pub(super) fn on_bytes(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
        let mut content = Vec::new();
        while let Some(kind) = self.reader.next(&mut content) {
            if kind == HANDSHAKE {
                self.flight.append(&mut content);
                self.read_flights();
            } else if self.is_ready {
                self.plaintext.append(&mut content);
            }
            content.clear();
        }
    }

    fn read_flights(&mut self) {
        while let Some(head) = self.flight.first_chunk::<FLIGHT_HEAD>() {
            let [kind, flag, length @ ..] = *head;
            let length = u32::from_be_bytes(length) as usize;
            if self.flight.len() < length.max(FLIGHT_HEAD) {
                return;
            }
            self.flight.drain(..length.max(FLIGHT_HEAD));
            self.on_flight(kind, flag != 0);
        }
    }

    fn on_flight(&mut self, kind: u8, resumes: bool) {
        let sizes = self.sizes;
        match (kind, self.is_client) {
            (CLIENT_HELLO, false) => {
                let size = if resumes {
                    sizes.resumed_server_flight
                } else {
                    sizes.server_flight
                };
                self.send_flight(SERVER_FLIGHT, resumes, size);
            }
            (SERVER_FLIGHT, true) => {
                self.send_flight(CLIENT_FINISHED, resumes, sizes.client_finished);
                self.is_ready = true;
            }
            (CLIENT_FINISHED, false) => {
                self.is_ready = true;
                self.send_flight(TICKETS, false, sizes.tickets);
            }
            (TICKETS, true) => self.has_ticket = true,
            _ => {}
        }
    }

    fn send_flight(&mut self, kind: u8, flag: bool, size: usize) {
        let size = size.max(FLIGHT_HEAD);
        let mut flight = vec![kind, u8::from(flag)];
        flight.extend_from_slice(&(size as u32).to_be_bytes());
        flight.resize(size, 0);
        record::write(HANDSHAKE, &flight, &mut self.outgoing);
    }

    /// Protects plaintext.
    pub(super) fn write(&mut self, plaintext: &[u8]) {
        record::write(APPLICATION, plaintext, &mut self.outgoing);
    }

    /// Takes what is to be written to the TCP connection.
    pub(super) fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// The plaintext that arrived and was not taken.
    pub(super) fn plaintext(&mut self) -> &mut Vec<u8> {
        &mut self.plaintext
    }
}
