//! Reads the frame table of the video track of MP4 and QuickTime files (ISO/IEC 14496-12), plain or
//! fragmented.
//!
//! Boxes are decoded by `mp4-atom` and interpreted here. Only the boxes with sizes, times and sync
//! samples are decoded, so the codec is irrelevant, and media data are skipped without being read.
//! Edit lists are ignored: they affect the display, not the frames.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use mp4_atom::{
    Atom, Decode, DecodeMaybe, FourCC, Header, Mdhd, ReadFrom, Stss, Stsz, StszSamples, Stts, Tfdt,
    Tfhd, Tkhd, Trex, Trun,
};
use thiserror::Error;

use super::error::RecordingError;
use super::recording::{MAX_FRAMES, RecordedFrame, Recording};
use crate::frame::FrameKind;

/// Largest `moov` or `moof` that is read; a track of [`MAX_FRAMES`] takes about 50 MB.
const MAX_TABLES: u64 = 256 << 20;

/// The flag of a sample that isn't a sync sample (ISO/IEC 14496-12, 8.8.3.1).
const NON_SYNC: u32 = 0x0001_0000;

/// Containers that are searched without decoding them as a whole.
const TRAK: FourCC = FourCC::new(b"trak");
const MDIA: FourCC = FourCC::new(b"mdia");
const MINF: FourCC = FourCC::new(b"minf");
const STBL: FourCC = FourCC::new(b"stbl");
const MVEX: FourCC = FourCC::new(b"mvex");
const TRAF: FourCC = FourCC::new(b"traf");
/// The box with the type of a track.
const HDLR: FourCC = FourCC::new(b"hdlr");
/// Placeholder for the file where a box is named.
const FILE: FourCC = FourCC::new(b"file");

/// Why a file can't be read as MP4.
#[derive(Debug, Error)]
pub enum DemuxError {
    /// Reading failed.
    #[error("can't be read: {0}")]
    Io(#[from] std::io::Error),
    /// A box is invalid, or ends before its content.
    #[error("not a valid MP4 file: {atom}: {reason}")]
    Malformed {
        /// The box, by its four letters.
        atom: String,
        /// The error.
        reason: String,
    },
    /// It doesn't start with a box.
    #[error("not an MP4 or MOV file: convert it, or list its frames in a .csv file")]
    NotMp4,
    /// There is no video track in it.
    #[error("there is no video track in it")]
    NoVideo,
    /// The tables of the file are larger than 256 MiB.
    #[error("its tables are larger than 256 MiB")]
    TooLarge,
    /// The tables don't describe a valid stream.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

fn malformed(atom: FourCC, reason: &(impl ToString + ?Sized)) -> DemuxError {
    DemuxError::Malformed {
        atom: atom.as_ref().escape_ascii().to_string(),
        reason: reason.to_string(),
    }
}

/// Reads the frame table of the first video track of an MP4 or QuickTime file. Times are decoding
/// times, which are in sending order.
pub fn read_mp4(file: &mut (impl Read + Seek)) -> Result<Recording, DemuxError> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut track = None;
    let mut position = 0;
    while position < length {
        let (kind, size) = match next_box(file, length) {
            // Other formats rarely start with a plausible size.
            Err(DemuxError::Malformed { .. }) if position == 0 => return Err(DemuxError::NotMp4),
            found => found?,
        };
        position = file.stream_position()? + size;
        match kind.as_ref() {
            b"moov" => track = Some(Track::from_moov(&read_tables(file, size)?)?),
            // Fragments before their movie can't be interpreted.
            b"moof" => {
                let track: &mut Track = track.as_mut().ok_or(DemuxError::NoVideo)?;
                track.add_fragment(&read_tables(file, size)?)?;
            }
            _ => {}
        }
        file.seek(SeekFrom::Start(position))?;
    }
    track.ok_or(DemuxError::NoVideo)?.into_recording()
}

/// The type of the next box of a file of `length` bytes, and the size of its body.
fn next_box(file: &mut (impl Read + Seek), length: u64) -> Result<(FourCC, u64), DemuxError> {
    let header = Header::read_from(file).map_err(|error| malformed(FILE, &error))?;
    let rest = length.saturating_sub(file.stream_position()?);
    let size = header.size.map_or(rest, |size| size as u64);
    if size > rest {
        return Err(malformed(header.kind, "the file ends before its end"));
    }
    Ok((header.kind, size))
}

/// The `size` bytes of a box; they are known to be in the file.
fn read_tables(file: &mut impl Read, size: u64) -> Result<Vec<u8>, DemuxError> {
    if size > MAX_TABLES {
        return Err(DemuxError::TooLarge);
    }
    let mut body = Vec::new();
    file.take(size).read_to_end(&mut body)?;
    Ok(body)
}

/// The boxes in a box.
struct Boxes<'a>(&'a [u8]);

impl<'a> Iterator for Boxes<'a> {
    type Item = Result<(FourCC, &'a [u8]), DemuxError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Some writers end a container with four zero bytes: too few for a box, so treated as its
        // end.
        let header = match Header::decode_maybe(&mut self.0) {
            Ok(header) => header?,
            Err(error) => {
                self.0 = &[];
                return Some(Err(malformed(FILE, &error)));
            }
        };
        let size = header.size.unwrap_or(self.0.len());
        let Some((body, rest)) = self.0.split_at_checked(size) else {
            self.0 = &[];
            return Some(Err(malformed(header.kind, "it ends outside of its box")));
        };
        self.0 = rest;
        Some(Ok((header.kind, body)))
    }
}

/// The first box of a type.
fn find(body: &[u8], kind: FourCC) -> Result<Option<&[u8]>, DemuxError> {
    for entry in Boxes(body) {
        let (found, body) = entry?;
        if found == kind {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

/// The first box of a type, which must exist.
fn need(body: &[u8], kind: FourCC) -> Result<&[u8], DemuxError> {
    find(body, kind)?.ok_or_else(|| malformed(kind, "it is missing"))
}

/// The first box of a type, which must exist, decoded.
fn table<T: Atom>(body: &[u8]) -> Result<T, DemuxError> {
    decode(need(body, T::KIND)?)
}

/// Decodes a box's body.
fn decode<T: Atom>(mut body: &[u8]) -> Result<T, DemuxError> {
    T::decode_body(&mut body).map_err(|error| malformed(T::KIND, &error))
}

/// The frames of a video track, in ticks of its clock.
struct Track {
    id: u32,
    /// Ticks per second, not zero.
    timescale: u32,
    /// Defaults of frames in fragments.
    defaults: Trex,
    frames: Vec<Sample>,
    /// Decoding time of the frame after the last one.
    next: u64,
}

/// A frame in the tables.
struct Sample {
    at: u64,
    size: u32,
    sync: bool,
}

impl Track {
    /// The first video track of a movie.
    fn from_moov(moov: &[u8]) -> Result<Self, DemuxError> {
        for entry in Boxes(moov) {
            let (kind, trak) = entry?;
            if kind != TRAK {
                continue;
            }
            let mdia = need(trak, MDIA)?;
            if is_video(need(mdia, HDLR)?)? {
                return Self::from_trak(moov, trak, mdia);
            }
        }
        Err(DemuxError::NoVideo)
    }

    fn from_trak(moov: &[u8], trak: &[u8], mdia: &[u8]) -> Result<Self, DemuxError> {
        let id = table::<Tkhd>(trak)?.track_id;
        let timescale = table::<Mdhd>(mdia)?.timescale;
        if timescale == 0 {
            return Err(malformed(Mdhd::KIND, "a clock of no ticks per second"));
        }
        let mut track = Self {
            id,
            timescale,
            defaults: defaults(moov, id)?,
            frames: Vec::new(),
            next: 0,
        };
        track.add_samples(need(need(mdia, MINF)?, STBL)?)?;
        Ok(track)
    }

    /// Adds the frames of a sample table (8.5 to 8.7 of the standard).
    fn add_samples(&mut self, stbl: &[u8]) -> Result<(), DemuxError> {
        let times = table::<Stts>(stbl)?.entries;
        let mut deltas = times
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.sample_delta, run.sample_count as usize));
        // Without this box, every sample is a sync sample.
        let sync = find(stbl, Stss::KIND)?.map(decode::<Stss>).transpose()?;
        let mut sync = sync.map(|stss| stss.entries.into_iter().peekable());
        let sizes = table::<Stsz>(stbl)?.samples;
        let (count, of) = match &sizes {
            StszSamples::Identical { count, size } => (*count as usize, Some(*size)),
            StszSamples::Different { sizes } => (sizes.len(), None),
        };
        for index in 0..count {
            let size = match (&sizes, of) {
                (StszSamples::Different { sizes }, _) => sizes[index],
                (_, of) => of.unwrap_or_default(),
            };
            // Samples are numbered from 1, sync samples in increasing order.
            let number = index as u64 + 1;
            let is_sync = sync
                .as_mut()
                .is_none_or(|list| list.next_if(|next| u64::from(*next) == number).is_some());
            let delta = deltas
                .next()
                .ok_or_else(|| malformed(Stts::KIND, "times for fewer frames than there are"))?;
            self.push(size, is_sync, delta)?;
        }
        Ok(())
    }

    /// Adds the frames of a movie fragment (8.8 of the standard).
    fn add_fragment(&mut self, moof: &[u8]) -> Result<(), DemuxError> {
        for entry in Boxes(moof) {
            let (kind, traf) = entry?;
            if kind != TRAF {
                continue;
            }
            let head = table::<Tfhd>(traf)?;
            if head.track_id != self.id {
                continue;
            }
            if let Some(tfdt) = find(traf, Tfdt::KIND)? {
                self.next = decode::<Tfdt>(tfdt)?.base_media_decode_time;
            }
            for entry in Boxes(traf) {
                let (kind, body) = entry?;
                if kind == Trun::KIND {
                    self.add_run(&head, &decode(body)?)?;
                }
            }
        }
        Ok(())
    }

    fn add_run(&mut self, head: &Tfhd, run: &Trun) -> Result<(), DemuxError> {
        let defaults = self.defaults.clone();
        let duration = head.default_sample_duration;
        let duration = duration.unwrap_or(defaults.default_sample_duration);
        let size = head.default_sample_size;
        let size = size.unwrap_or(defaults.default_sample_size);
        let flags = head.default_sample_flags;
        let flags = flags.unwrap_or(defaults.default_sample_flags);
        for entry in &run.samples {
            let sync = entry.flags.unwrap_or(flags) & NON_SYNC == 0;
            self.push(
                entry.size.unwrap_or(size),
                sync,
                entry.duration.unwrap_or(duration),
            )?;
        }
        Ok(())
    }

    fn push(&mut self, size: u32, sync: bool, delta: u32) -> Result<(), DemuxError> {
        if self.frames.len() == MAX_FRAMES {
            return Err(RecordingError::TooManyFrames.into());
        }
        let at = self.next;
        self.frames.push(Sample { at, size, sync });
        self.next = at.saturating_add(u64::from(delta));
        Ok(())
    }

    /// The time of a tick, to the nearest nanosecond.
    fn time(&self, ticks: u64) -> Duration {
        let timescale = u128::from(self.timescale);
        let nanos = (u128::from(ticks) * 1_000_000_000 + timescale / 2) / timescale;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn into_recording(self) -> Result<Recording, DemuxError> {
        let start = self.frames.first().map_or(0, |sample| sample.at);
        let since_start = |ticks: u64| self.time(ticks.saturating_sub(start));
        let last = self.frames.last().map_or(start, |sample| sample.at);
        let last = since_start(self.next).saturating_sub(since_start(last));
        let frames = self.frames.iter().map(|sample| RecordedFrame {
            at: since_start(sample.at),
            size: sample.size,
            kind: if sample.sync {
                FrameKind::Key
            } else {
                FrameKind::Delta
            },
        });
        Ok(Recording::new(frames.collect(), Some(last))?)
    }
}

/// Whether a handler box is of type video. Only its type is read: QuickTime and MP4 encode the
/// following name differently.
fn is_video(hdlr: &[u8]) -> Result<bool, DemuxError> {
    let mut kind = hdlr.get(8..).unwrap_or_default();
    let kind = FourCC::decode(&mut kind).map_err(|error| malformed(HDLR, &error))?;
    Ok(kind.as_ref() == b"vide")
}

/// The defaults of a track's fragments; zeros if the movie has none.
fn defaults(moov: &[u8], id: u32) -> Result<Trex, DemuxError> {
    for entry in Boxes(find(moov, MVEX)?.unwrap_or_default()) {
        let (kind, body) = entry?;
        if kind == Trex::KIND {
            let trex = decode::<Trex>(body)?;
            if trex.track_id == id {
                return Ok(trex);
            }
        }
    }
    Ok(Trex::default())
}
