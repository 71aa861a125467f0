//! The form of datagrams in the tunnel.

use swiftwater_wire::{Reader, VarInt, Writer};

/// Quarter Stream ID (RFC 9297, section 2.1): the tunnel is the first request.
const STREAM: u64 = 0;
/// Context of UDP payloads (RFC 9298, section 4).
pub(super) const PLAIN: u64 = 0;
/// Context of numbered payloads.
pub(super) const NUMBERED: u64 = 2;
/// Context of reports.
pub(super) const REPORT: u64 = 4;

/// Most bytes before the payload.
const MAX_HEAD: usize = 1 + 1 + 8;

/// A datagram with a payload, with a number in [`NUMBERED`].
pub(super) fn encode(context: u64, number: Option<u64>, payload: &[u8]) -> Vec<u8> {
    let mut head = [0; MAX_HEAD];
    let mut writer = Writer::new(&mut head);
    writer.varint(STREAM);
    writer.varint(context);
    if let Some(number) = number {
        writer.varint(VarInt::saturating(number).get());
    }
    let written = writer.written();
    [&head[..written], payload].concat()
}

/// The context of a datagram and what follows.
pub(super) fn decode(datagram: &[u8]) -> Option<(u64, &[u8])> {
    let mut reader = Reader::new(datagram);
    reader.varint().ok()?;
    let context = reader.varint().ok()?;
    Some((context, reader.rest()))
}

/// The number and the payload in context [`NUMBERED`].
pub(super) fn numbered(content: &[u8]) -> Option<(u64, &[u8])> {
    let mut reader = Reader::new(content);
    let number = reader.varint().ok()?;
    Some((number, reader.rest()))
}
