//! Where frames are appended to a packet under construction, and the record of what it carries.

use swiftwater_units::{PacketNumber, PathId, StreamId};
use swiftwater_wire::frame::types;
use swiftwater_wire::{Frame, MultipathVersion, Writer};

use crate::control_values::ControlKey;
use crate::frame_counts::FrameCounter;
use crate::observe::Purpose;

/// A frame that a packet carried and whose owner gets the packet's fate: `on_frame_fate` is called when
/// the packet is acknowledged, lost or probed for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Carried {
    /// An ACK of the space's (or the named path's) packets up to `largest`.
    Ack {
        /// Path whose 1-RTT space was acknowledged; meaningless for other encryption levels.
        path: PathId,
        /// Largest packet number that it acknowledged.
        largest: PacketNumber,
    },
    /// Handshake bytes of the packet's own encryption level.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// Stream bytes.
    Stream {
        /// The stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// True if the frame had the FIN bit.
        fin: bool,
        /// Why the bytes were sent.
        purpose: Purpose,
    },
    /// A datagram that its application gave a key.
    Datagram {
        /// The key.
        key: u64,
    },
    /// A small value of `Control`.
    Control {
        /// Which value.
        key: ControlKey,
        /// Its version when it was sent.
        version: u32,
    },
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    /// The peer has it.
    Acked,
    /// It is considered lost.
    Lost,
    /// A probe timeout repeats what it carried; it may arrive yet.
    Probed,
}

/// Appends frames to the packet under construction, within the room left, and records those whose
/// owners get the packet's fate.
#[derive(Debug)]
pub(crate) struct FrameWriter<'a, 'b> {
    writer: &'a mut Writer<'b>,
    limit: usize,
    carried: &'a mut Vec<Carried>,
    counts: Option<&'a mut FrameCounter>,
    ack_eliciting: bool,
    multipath_version: MultipathVersion,
}

impl<'a, 'b> FrameWriter<'a, 'b> {
    /// Appends to `writer`, not beyond `limit` bytes in total, recording into `carried`.
    pub(crate) fn new(
        writer: &'a mut Writer<'b>,
        limit: usize,
        carried: &'a mut Vec<Carried>,
    ) -> Self {
        Self {
            writer,
            limit,
            carried,
            counts: None,
            ack_eliciting: false,
            multipath_version: MultipathVersion::default(),
        }
    }

    /// Writes the frames of `version` of the multipath extension.
    pub(crate) fn in_version(mut self, version: MultipathVersion) -> Self {
        self.multipath_version = version;
        self
    }

    /// The version of the multipath extension whose frames are written.
    pub(crate) fn multipath_version(&self) -> MultipathVersion {
        self.multipath_version
    }

    /// Counts the frames in `counts`, too.
    pub(crate) fn counting(mut self, counts: &'a mut FrameCounter) -> Self {
        self.counts = Some(counts);
        self
    }

    /// Room left for frames, bytes.
    pub(crate) fn remaining(&self) -> usize {
        self.limit.saturating_sub(self.writer.written())
    }

    /// True if an ack-eliciting frame was written.
    pub(crate) fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// True if it has stream bytes already.
    pub(crate) fn has_stream_bytes(&self) -> bool {
        let is_stream = |carried: &Carried| matches!(carried, Carried::Stream { .. });
        self.carried.iter().any(is_stream)
    }

    /// True if it has a byte of `range` of stream `id` already.
    pub(crate) fn has_any_of(&self, id: StreamId, range: &std::ops::Range<u64>) -> bool {
        self.carried.iter().any(|carried| match *carried {
            Carried::Stream {
                id: of,
                offset,
                len,
                ..
            } => of == id && offset < range.end && range.start < offset + u64::from(len),
            _ => false,
        })
    }

    /// Writes `frame` if it fits; returns whether it did.
    pub(crate) fn frame(&mut self, frame: &Frame<'_>) -> bool {
        let version = self.multipath_version;
        if frame.size_in(version) > self.remaining() {
            return false;
        }
        frame.encode_in(version, self.writer);
        self.count(frame.frame_type_in(version));
        self.ack_eliciting |= frame.is_ack_eliciting();
        true
    }

    /// Writes `frame` if it fits and records `carried` for it; returns whether it did.
    pub(crate) fn carry(&mut self, frame: &Frame<'_>, carried: Carried) -> bool {
        let fits = self.frame(frame);
        if fits {
            self.carried.push(carried);
        }
        fits
    }

    /// Lends the raw writer for a frame whose payload is copied straight into the packet. The
    /// caller has checked [`FrameWriter::remaining`] and calls [`FrameWriter::wrote`] afterwards.
    pub(crate) fn raw(&mut self) -> &mut Writer<'b> {
        self.writer
    }

    /// Records a frame that was written through [`FrameWriter::raw`].
    pub(crate) fn wrote(&mut self, carried: Carried, ack_eliciting: bool) {
        let frame_type = match carried {
            Carried::Ack { .. } => Some(types::ACK),
            Carried::Crypto { .. } => Some(types::CRYPTO),
            Carried::Stream { .. } => Some(types::STREAM),
            Carried::Datagram { .. } | Carried::Control { .. } => None,
        };
        if let Some(frame_type) = frame_type {
            self.count(frame_type);
        }
        self.carried.push(carried);
        self.ack_eliciting |= ack_eliciting;
    }

    fn count(&mut self, frame_type: u64) {
        if let Some(counts) = &mut self.counts {
            counts.add(frame_type);
        }
    }
}
