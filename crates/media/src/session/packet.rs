//! Packets that carry video, from the sender to the receiver.
//!
//! All numbers are in network byte order. A header of 34 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | kind: 1 source, 2 retransmission, 3 replica, 4 repair, 5 parity |
//! | 1 | flags: 1 key frame, 2 restart (frames before this one won't be completed) |
//! | 8 | sequence number; each packet sent has the next |
//! | 8 | index of the frame |
//! | 8 | time at which the frame was encoded, ns since the start of the stream |
//! | 4 | bytes of the frame |
//! | 2 | source packets of the frame |
//! | 2 | number of the packet among the source (kinds 1 to 3), repair or parity packets of the frame |
//!
//! A repair packet belongs to its frame (Reed-Solomon). A parity packet covers the frames up to its
//! own; after the header it has their number (1 byte, 1 to 4) and for each, in order: packets (2), U
//! packets (2), bytes (4), flags (1), ns between its encoding and that of the parity's frame (4).
//! Then comes the payload.

use std::time::Duration;

use thiserror::Error;

use super::content::Cut;
use crate::frame::{Frame, FrameKind};
use crate::protection::block_code::{MAX_SOURCE_PACKETS, repair_capacity};
use crate::protection::tambur::{DELAY_FRAMES, Parity, Window, WindowFrame};

/// Bytes of the header without a window.
pub const HEADER_LEN: usize = 34;
/// Most frames that parity covers.
pub const MAX_WINDOW: usize = DELAY_FRAMES as usize + 1;
const WINDOW_FRAME_LEN: usize = 13;
const KEY: u8 = 1;
const RESTART: u8 = 2;

/// Content of a packet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Part of a frame, the first time.
    Source,
    /// Part of a frame, retransmitted because it was declared lost.
    Retransmission,
    /// Part of a frame, in advance of the loss of an earlier copy.
    Replica,
    /// Repair for the frame.
    Repair,
    /// Parity for the frames up to this one.
    Parity,
}

/// Header of every packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    /// Its content.
    pub kind: Kind,
    /// Its sequence number.
    pub sequence: u64,
    /// The frame.
    pub frame: Frame,
    /// Whether the frames before this one won't be completed.
    pub restart: bool,
    /// Source packets of the frame.
    pub packets: u16,
    /// Number among the packets of its kind of the frame.
    pub number: u16,
}

/// A decoded packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VideoPacket<'a> {
    /// Its header.
    pub header: Header,
    /// For parity: the covered frames.
    pub window: Option<Window>,
    /// The payload.
    pub payload: &'a [u8],
}

/// Bytes that are not a packet of a session. Such packets are ignored.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum PacketError {
    /// It ends too early.
    #[error("the packet ends before its {0}")]
    Truncated(&'static str),
    /// An unknown kind.
    #[error("packets of kind {0} are unknown")]
    Kind(u8),
    /// Contradictory values, or values beyond a limit.
    #[error("the packet's {0} is impossible")]
    Value(&'static str),
}

/// Decodes integers from the front of bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], PacketError> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(PacketError::Truncated(field))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, PacketError> {
        Ok(self.take::<1>(field)?[0])
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, PacketError> {
        self.take(field).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, PacketError> {
        self.take(field).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, PacketError> {
        self.take(field).map(u64::from_be_bytes)
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Source => 1,
            Self::Retransmission => 2,
            Self::Replica => 3,
            Self::Repair => 4,
            Self::Parity => 5,
        }
    }

    fn from_code(code: u8) -> Result<Self, PacketError> {
        Ok(match code {
            1 => Self::Source,
            2 => Self::Retransmission,
            3 => Self::Replica,
            4 => Self::Repair,
            5 => Self::Parity,
            _ => return Err(PacketError::Kind(code)),
        })
    }

    /// Whether it carries part of a frame itself.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Source | Self::Retransmission | Self::Replica)
    }
}

impl Header {
    /// Appends the header, and the window for parity.
    pub fn write(&self, window: Option<&Window>, out: &mut Vec<u8>) {
        let mut flags = if self.frame.is_key() { KEY } else { 0 };
        if self.restart {
            flags |= RESTART;
        }
        let at = u64::try_from(self.frame.at.as_nanos()).unwrap_or(u64::MAX);
        out.extend([self.kind.code(), flags]);
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.frame.index.to_be_bytes());
        out.extend(at.to_be_bytes());
        out.extend(self.frame.size.to_be_bytes());
        out.extend(self.packets.to_be_bytes());
        out.extend(self.number.to_be_bytes());
        let Some(window) = window else {
            return;
        };
        out.push(window.frames.len() as u8);
        for frame in &window.frames {
            let before = u32::try_from(frame.before.as_nanos()).unwrap_or(u32::MAX);
            out.extend(frame.packets.to_be_bytes());
            out.extend(frame.late_packets.to_be_bytes());
            out.extend(frame.size.to_be_bytes());
            out.push(if frame.is_key { KEY } else { 0 });
            out.extend(before.to_be_bytes());
        }
    }

    /// The division of the frame.
    pub fn cut(&self) -> Option<Cut> {
        Cut::from_counts(self.frame.size, u32::from(self.packets))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let kind = Kind::from_code(reader.u8("kind")?)?;
        let flags = reader.u8("flags")?;
        let sequence = reader.u64("sequence number")?;
        let index = reader.u64("frame index")?;
        let at = Duration::from_nanos(reader.u64("time")?);
        let size = reader.u32("frame size")?;
        let packets = reader.u16("packet count")?;
        let number = reader.u16("packet number")?;
        if sequence > u64::MAX / 2 {
            return Err(PacketError::Value("sequence number"));
        }
        // Frame indices become stream numbers of 60 bits.
        if index >= 1 << 60 {
            return Err(PacketError::Value("frame index"));
        }
        let is_cut = Cut::from_counts(size, u32::from(packets)).is_some();
        if !is_cut || usize::from(packets) > MAX_SOURCE_PACKETS {
            return Err(PacketError::Value("packet count"));
        }
        let numbers = match kind {
            Kind::Repair => repair_capacity(usize::from(packets)),
            Kind::Parity => usize::from(u16::MAX),
            _ => usize::from(packets),
        };
        if usize::from(number) >= numbers {
            return Err(PacketError::Value("packet number"));
        }
        let frame = Frame {
            index,
            kind: frame_kind(flags),
            size,
            at,
        };
        Ok(Self {
            kind,
            sequence,
            frame,
            restart: flags & RESTART != 0,
            packets,
            number,
        })
    }
}

fn frame_kind(flags: u8) -> FrameKind {
    if flags & KEY != 0 {
        FrameKind::Key
    } else {
        FrameKind::Delta
    }
}

impl<'a> VideoPacket<'a> {
    /// Decodes a packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader(bytes);
        let header = Header::read(&mut reader)?;
        let window = match header.kind {
            Kind::Parity => Some(read_window(&mut reader, &header)?),
            _ => None,
        };
        Ok(Self {
            header,
            window,
            payload: reader.rest(),
        })
    }

    /// For parity: the window of the code.
    pub fn parity(&self) -> Option<Parity> {
        self.window.clone().map(|window| Parity {
            window,
            number: self.header.number,
        })
    }
}

fn read_window(reader: &mut Reader<'_>, header: &Header) -> Result<Window, PacketError> {
    let count = usize::from(reader.u8("window")?);
    if count == 0 || count > MAX_WINDOW || count as u64 > header.frame.index.saturating_add(1) {
        return Err(PacketError::Value("window"));
    }
    if reader.0.len() < count * WINDOW_FRAME_LEN {
        return Err(PacketError::Truncated("window"));
    }
    let mut frames = Vec::with_capacity(count);
    for _ in 0..count {
        let packets = reader.u16("window")?;
        let late_packets = reader.u16("window")?;
        let size = reader.u32("window")?;
        let is_key = reader.u8("window")? & KEY != 0;
        let before = Duration::from_nanos(u64::from(reader.u32("window")?));
        let is_cut = Cut::from_counts(size, u32::from(packets)).is_some();
        if !is_cut || usize::from(packets) > MAX_SOURCE_PACKETS || late_packets > packets {
            return Err(PacketError::Value("window"));
        }
        frames.push(WindowFrame {
            packets,
            late_packets,
            size,
            is_key,
            before,
        });
    }
    Ok(Window {
        frame: header.frame.index,
        frames,
    })
}
