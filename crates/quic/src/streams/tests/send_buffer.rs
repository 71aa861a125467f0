use bytes::Bytes;
use proptest::prelude::*;

use super::bytes_at;
use crate::streams::chunk_pool::ChunkPool;
use crate::streams::send_buffer::{Piece, SendBuffer};

fn content(buffer: &SendBuffer, piece: Piece) -> Vec<u8> {
    let mut out = vec![0; piece.len];
    buffer.copy(piece.offset, &mut out);
    out
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "it is compared with what may be nothing"
)]
fn piece(offset: u64, len: usize, fin: bool) -> Option<Piece> {
    Some(Piece { offset, len, fin })
}

/// A buffer with `len` bytes, finished, all of it sent.
fn sent(len: usize, pool: &mut ChunkPool) -> SendBuffer {
    let mut buffer = SendBuffer::new();
    buffer.write(&bytes_at(0, len), pool);
    buffer.finish();
    let all = buffer.next_new(usize::MAX).unwrap();
    buffer.on_sent(all);
    buffer
}

#[test]
fn the_fin_goes_with_the_last_bytes_or_alone() {
    let pool = &mut ChunkPool::default();
    let mut buffer = SendBuffer::new();
    buffer.write(&bytes_at(0, 10), pool);
    assert_eq!(buffer.next_new(6), piece(0, 6, false));
    buffer.on_sent(buffer.next_new(10).unwrap());
    assert!(!buffer.has_retransmission());
    buffer.finish();
    assert_eq!(buffer.next_retransmission(100), piece(10, 0, true));
    buffer.on_sent(buffer.next_retransmission(100).unwrap());
    assert_eq!(buffer.next_retransmission(100), None);
}

#[test]
fn a_lost_fin_is_sent_again_until_any_copy_is_acknowledged() {
    let pool = &mut ChunkPool::default();
    let mut buffer = sent(10, pool);
    buffer.on_lost(0..10, true);
    assert_eq!(buffer.next_retransmission(100), piece(0, 10, true));
    buffer.on_acked(0..10, true, pool);
    assert_eq!(buffer.next_retransmission(100), None);
    assert!(buffer.is_complete());
    // The loss of another copy changes nothing any more.
    buffer.on_lost(0..10, true);
    assert!(buffer.is_complete());
    assert!(!buffer.has_retransmission());
}

#[test]
fn copies_skip_what_was_acknowledged() {
    let pool = &mut ChunkPool::default();
    let mut buffer = sent(100, pool);
    buffer.on_acked(20..30, false, pool);
    assert_eq!(buffer.next_copy(0..100, 1000), piece(0, 20, false));
    assert_eq!(buffer.next_copy(20..100, 1000), piece(30, 70, true));
    assert_eq!(buffer.next_copy(20..30, 1000), None);
    buffer.on_acked(30..100, false, pool);
    // Only the FIN is left of the end.
    assert_eq!(buffer.next_copy(30..100, 1000), piece(100, 0, true));
    assert_eq!(buffer.next_copy(100..100, 1000), piece(100, 0, true));
    buffer.on_acked(100..100, true, pool);
    assert_eq!(buffer.next_copy(100..100, 1000), None);
}

#[test]
fn a_copy_takes_the_place_of_a_retransmission() {
    let pool = &mut ChunkPool::default();
    let mut buffer = sent(100, pool);
    buffer.on_lost(0..50, false);
    assert_eq!(buffer.lost(), 50);
    buffer.on_sent(buffer.next_copy(10..30, 100).unwrap());
    assert_eq!(buffer.lost(), 30);
    assert_eq!(buffer.next_retransmission(100), piece(0, 10, false));
}

#[test]
fn unsent_bytes_are_never_copied() {
    let pool = &mut ChunkPool::default();
    let mut buffer = SendBuffer::new();
    buffer.write(&bytes_at(0, 100), pool);
    buffer.on_sent(buffer.next_new(40).unwrap());
    assert_eq!(buffer.next_copy(0..100, 1000), piece(0, 40, false));
    assert_eq!(buffer.next_copy(40..100, 1000), None);
}

#[derive(Clone, Debug)]
enum Op {
    Write(usize),
    Push(usize),
    Finish,
    SendFresh(usize),
    SendRepair(usize),
    SendCopy(u64, u64, usize),
    Ack(usize),
    Lose(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (1..3000usize).prop_map(Op::Write),
        2 => (1..3000usize).prop_map(Op::Push),
        1 => Just(Op::Finish),
        6 => (1..1500usize).prop_map(Op::SendFresh),
        4 => (1..1500usize).prop_map(Op::SendRepair),
        2 => (0..20_000u64, 0..3000u64, 1..1500usize).prop_map(|(a, b, c)| Op::SendCopy(a, b, c)),
        6 => (0..64usize).prop_map(Op::Ack),
        5 => (0..64usize).prop_map(Op::Lose),
    ]
}

/// A flag per byte.
#[derive(Default)]
struct Model {
    sent: usize,
    acked: Vec<bool>,
    lost: Vec<bool>,
    finished: bool,
    fin_acked: bool,
}

impl Model {
    /// `len` more bytes are written; `None` if the stream is finished.
    fn extend(&mut self, len: usize) -> Option<Vec<u8>> {
        if self.finished {
            return None;
        }
        let data = bytes_at(self.acked.len() as u64, len);
        self.acked.resize(self.acked.len() + len, false);
        self.lost.resize(self.acked.len(), false);
        Some(data)
    }

    fn on_acked(&mut self, piece: &Piece) {
        let range = piece.offset as usize..piece.offset as usize + piece.len;
        self.acked[range.clone()].fill(true);
        self.lost[range].fill(false);
        self.fin_acked |= piece.fin;
    }

    fn on_lost(&mut self, piece: &Piece) {
        for at in piece.offset as usize..piece.offset as usize + piece.len {
            self.lost[at] = !self.acked[at];
        }
    }

    fn check(&self, buffer: &SendBuffer) {
        let base = self.acked.iter().take_while(|&&acked| acked).count();
        let end = self.acked.len();
        assert_eq!(buffer.end(), end as u64);
        assert_eq!(buffer.sent(), self.sent as u64);
        assert_eq!(buffer.held(), (end - base) as u64);
        assert_eq!(buffer.unsent(), (end - self.sent) as u64);
        assert_eq!(
            buffer.lost(),
            self.lost.iter().filter(|&&lost| lost).count() as u64
        );
        assert_eq!(buffer.is_complete(), self.fin_acked && base == end);
    }

    /// A frame was made: its bytes are right and none was acknowledged, and they aren't lost now.
    fn on_sent(&mut self, buffer: &mut SendBuffer, piece: Piece) {
        assert_eq!(content(buffer, piece), bytes_at(piece.offset, piece.len));
        let range = piece.offset as usize..piece.offset as usize + piece.len;
        assert!(
            !self.acked[range.clone()].contains(&true),
            "{piece:?} was acknowledged"
        );
        assert_eq!(piece.fin, self.finished && range.end == self.acked.len());
        self.lost[range.clone()].fill(false);
        self.sent = self.sent.max(range.end);
        buffer.on_sent(piece);
    }
}

/// Everything in flight is lost; then all is sent and acknowledged.
fn send_all_again(buffer: &mut SendBuffer, flying: Vec<Piece>, pool: &mut ChunkPool) {
    let range = |piece: &Piece| piece.offset..piece.offset + piece.len as u64;
    for piece in flying {
        buffer.on_lost(range(&piece), piece.fin);
    }
    while let Some(piece) = buffer
        .next_retransmission(1000)
        .or_else(|| buffer.next_new(1000))
    {
        buffer.on_sent(piece);
        buffer.on_acked(range(&piece), piece.fin, pool);
    }
}

proptest! {
    /// Writes, sends, copies, acknowledgements and losses in any order; each frame sent gets its
    /// fate once, or is first thought lost and then acknowledged.
    #[test]
    fn agrees_with_a_map_of_bytes(ops in proptest::collection::vec(op(), 1..150)) {
        let pool = &mut ChunkPool::default();
        let mut buffer = SendBuffer::new();
        let mut model = Model::default();
        let mut flying: Vec<Piece> = Vec::new();
        let mut thought_lost: Vec<Piece> = Vec::new();
        for op in ops {
            let sending = match op {
                Op::Write(len) | Op::Push(len) => {
                    if let Some(data) = model.extend(len) {
                        match op {
                            Op::Push(_) => buffer.push(Bytes::from(data), pool),
                            _ => buffer.write(&data, pool),
                        }
                    }
                    None
                }
                Op::Finish => {
                    buffer.finish();
                    model.finished = true;
                    None
                }
                Op::SendFresh(max) => buffer.next_new(max),
                Op::SendRepair(max) => buffer.next_retransmission(max),
                Op::SendCopy(start, len, max) => buffer.next_copy(start..start + len, max),
                Op::Ack(which) => {
                    let from = if which % 4 == 0 { &mut thought_lost } else { &mut flying };
                    if !from.is_empty() {
                        let piece = from.remove(which % from.len());
                        let end = piece.offset + piece.len as u64;
                        buffer.on_acked(piece.offset..end, piece.fin, pool);
                        model.on_acked(&piece);
                    }
                    None
                }
                Op::Lose(which) => {
                    if !flying.is_empty() {
                        let piece = flying.remove(which % flying.len());
                        let end = piece.offset + piece.len as u64;
                        buffer.on_lost(piece.offset..end, piece.fin);
                        model.on_lost(&piece);
                        thought_lost.push(piece);
                    }
                    None
                }
            };
            if let Some(piece) = sending {
                model.on_sent(&mut buffer, piece);
                flying.push(piece);
            }
            model.check(&buffer);
        }
        // Whatever happened, sending everything again delivers everything.
        buffer.finish();
        model.finished = true;
        send_all_again(&mut buffer, flying, pool);
        prop_assert!(buffer.is_complete());
        prop_assert_eq!(buffer.held(), 0);
    }
}
