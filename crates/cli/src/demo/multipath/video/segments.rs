//! The video: playlists of HTTP Live Streaming, and segments with the sizes of a real encode.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_media::source::sample;
use swiftwater_media::streaming::{ChunkedVideo, Ladder};

use crate::demo::random_numbers::RandomNumbers;
use crate::digest::sha256;
use crate::exit::{Exit, Failure};

/// Play time of a segment.
const SEGMENT: Duration = Duration::from_secs(2);

/// Path of the master playlist.
pub const MASTER: &str = "/master.m3u8";

/// What the server serves, by path.
#[derive(Debug)]
pub struct Segments {
    objects: BTreeMap<String, (Bytes, [u8; 32])>,
}

impl Segments {
    /// Segments of two seconds at 1, 2.5, 5, 8 and 16 Mbit/s, whose sizes vary as those of the encode in `assets/`; their
    /// bytes are random, of `seed`.
    pub fn generate(seed: u64) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failure, error);
        let video = ChunkedVideo::of_encode(&sample(), Ladder::chorus(), SEGMENT);
        let video = video.map_err(|error| failed(&error))?;
        let mut objects = BTreeMap::new();
        let mut add = |path: String, content: Vec<u8>| {
            let hash = sha256(&content);
            objects.insert(path, (Bytes::from(content), hash));
        };
        let mut numbers = RandomNumbers::new(seed);
        let mut master = "#EXTM3U\n".to_owned();
        for (level, rendition) in video.ladder().renditions().iter().enumerate() {
            let mut playlist = format!(
                "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{}\n",
                SEGMENT.as_secs()
            );
            for (index, chunk) in video.chunks().iter().enumerate() {
                let name = format!("{level}-{index}.m4s");
                let seconds = chunk.duration.as_secs_f64();
                let size =
                    usize::try_from(chunk.bytes_at(level)).map_err(|error| failed(&error))?;
                // Byte ranges: the player knows the sizes, as from an index of segments.
                let _ = writeln!(
                    playlist,
                    "#EXTINF:{seconds},\n#EXT-X-BYTERANGE:{size}@0\n{name}"
                );
                add(format!("/{name}"), numbers.bytes(size));
            }
            playlist += "#EXT-X-ENDLIST\n";
            add(format!("/{level}.m3u8"), playlist.into_bytes());
            let rate = rendition.rate.as_bps();
            let _ = writeln!(master, "#EXT-X-STREAM-INF:BANDWIDTH={rate}\n{level}.m3u8");
        }
        add(MASTER.to_owned(), master.into_bytes());
        Ok(Self { objects })
    }

    /// The object at `path`.
    pub fn content(&self, path: &str) -> Option<Bytes> {
        self.objects.get(path).map(|(content, _)| content.clone())
    }

    /// Whether this is the hash of the object at `path`.
    pub fn has_sha256(&self, path: &str, hash: &[u8]) -> bool {
        self.objects.get(path).is_some_and(|(_, own)| own == hash)
    }
}
