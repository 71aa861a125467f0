//! The erasure code of one frame: repair packets, of which any subset as large as the number of
//! missing source packets restores the frame. Arithmetic by `reed-solomon-simd`. Across frames:
//! [`super::tambur`].

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use thiserror::Error;

/// Why a block can't be encoded or decoded.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum BlockCodeError {
    /// More packets than the code supports.
    #[error("a frame of {0} packets is too large for the erasure code; send larger packets")]
    TooManyPackets(usize),
    /// Too few packets, or packets of unequal size.
    #[error("the received packets don't restore the frame: {0}")]
    NotEnough(String),
}

/// Most source packets of a block.
pub const MAX_SOURCE_PACKETS: usize = 4096;

/// How many different repair packets a block of `source` packets has. The code depends on this
/// number, so both ends must use the same: it is a function of the block's size alone, and large
/// enough for the rounds of a deadline-bound sender (8 times as many, at least 64).
pub fn repair_capacity(source: usize) -> usize {
    (source * 8).next_power_of_two().clamp(64, 32_768)
}

/// Bytes of a repair packet for source packets of `packet_len`: the code needs an even number.
pub fn repair_len(packet_len: usize) -> usize {
    packet_len + packet_len % 2
}

/// All repair packets of a block of equal packets; the last may be shorter and counts as padded with
/// zeros.
pub fn encode(source: &[&[u8]]) -> Result<Vec<Vec<u8>>, BlockCodeError> {
    let too_many = || BlockCodeError::TooManyPackets(source.len());
    if source.is_empty() || source.len() > MAX_SOURCE_PACKETS {
        return Err(too_many());
    }
    let len = repair_len(
        source
            .iter()
            .map(|packet| packet.len())
            .max()
            .unwrap_or(0)
            .max(1),
    );
    let capacity = repair_capacity(source.len());
    let mut encoder =
        ReedSolomonEncoder::new(source.len(), capacity, len).map_err(|_| too_many())?;
    for packet in source {
        let added = encoder.add_original_shard(padded(packet, len));
        added.map_err(|_| too_many())?;
    }
    let encoded = encoder.encode().map_err(|_| too_many())?;
    Ok(encoded.recovery_iter().map(<[u8]>::to_vec).collect())
}

/// Restores the packets of a block from the received ones, each as long as a repair packet.
/// `source` and `repair` hold (number in the block, content).
pub fn decode(
    source_count: usize,
    source: &[(usize, &[u8])],
    repair: &[(usize, &[u8])],
) -> Result<Vec<Vec<u8>>, BlockCodeError> {
    let fail = |error: reed_solomon_simd::Error| BlockCodeError::NotEnough(error.to_string());
    if source_count == 0 || source_count > MAX_SOURCE_PACKETS {
        return Err(BlockCodeError::TooManyPackets(source_count));
    }
    let contents = source
        .iter()
        .chain(repair)
        .map(|(_, content)| content.len());
    let len = repair_len(contents.max().unwrap_or(0).max(1));
    let mut packets = vec![Vec::new(); source_count];
    for &(number, content) in source {
        if let Some(packet) = packets.get_mut(number) {
            *packet = padded(content, len);
        }
    }
    if packets.iter().all(|packet| !packet.is_empty()) {
        return Ok(packets);
    }
    let capacity = repair_capacity(source_count);
    let mut decoder = ReedSolomonDecoder::new(source_count, capacity, len).map_err(fail)?;
    for (number, packet) in packets.iter().enumerate() {
        if !packet.is_empty() {
            decoder.add_original_shard(number, packet).map_err(fail)?;
        }
    }
    for &(number, content) in repair {
        decoder.add_recovery_shard(number, content).map_err(fail)?;
    }
    let decoded = decoder.decode().map_err(fail)?;
    for (number, content) in decoded.restored_original_iter() {
        packets[number] = content.to_vec();
    }
    Ok(packets)
}

fn padded(packet: &[u8], len: usize) -> Vec<u8> {
    let mut padded = packet.to_vec();
    padded.resize(len, 0);
    padded
}
