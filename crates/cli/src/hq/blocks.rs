//! A file in blocks, as the service hands it to the transport.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// The largest block, bytes: what a request may hold beyond the transport's send buffer. Larger ones
/// are hardly faster.
pub const BLOCK: usize = 32 * 1024;

/// A file that is read block by block. Its operations block; nothing is held between them.
#[derive(Debug)]
pub struct Blocks {
    path: PathBuf,
    file: File,
    /// The size that the file had when it was opened.
    expected: u64,
    read: u64,
    ended: bool,
}

impl Blocks {
    /// Opens a file.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = File::open(&path)?;
        let expected = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            expected,
            read: 0,
            ended: false,
        })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the end has been seen: nothing follows what was read.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The next block, at most [`BLOCK`] bytes; empty if nothing follows. A file that has grown since
    /// it was opened is read to its present end.
    pub fn read_block(&mut self) -> io::Result<Bytes> {
        if self.ended {
            return Ok(Bytes::new());
        }
        // One byte more than there should be, to see the end in the same step. A block is kept until
        // it is acknowledged, so it is no larger than its content.
        let rest = self.expected.saturating_sub(self.read).saturating_add(1);
        let size = rest.min(BLOCK as u64);
        let mut block = Vec::with_capacity(size as usize);
        (&self.file).take(size).read_to_end(&mut block)?;
        self.ended = (block.len() as u64) < size;
        self.read = self.read.saturating_add(block.len() as u64);
        Ok(block.into())
    }
}
