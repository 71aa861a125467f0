//! Files in blocks, as the service sends them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, OpenOptions};
use std::io::Write;

use swiftwater_cli::hq::blocks::{BLOCK, Blocks};
use tempfile::TempDir;

fn all(blocks: &mut Blocks) -> (Vec<u8>, Vec<usize>) {
    let (mut content, mut sizes) = (Vec::new(), Vec::new());
    while !blocks.ended() {
        let block = blocks.read_block().unwrap();
        content.extend_from_slice(&block);
        sizes.push(block.len());
    }
    (content, sizes)
}

#[test]
fn no_block_exceeds_the_bound_and_nothing_is_lost() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 7] {
        let data: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &data).unwrap();
        let mut blocks = Blocks::open(path.clone()).unwrap();
        let (content, sizes) = all(&mut blocks);
        assert!(content == data, "{size} bytes arrive as they are");
        assert!(sizes.iter().all(|size| *size <= BLOCK), "{sizes:?}");
        assert!(sizes.len() <= size / BLOCK + 1, "{sizes:?}");
        assert!(blocks.read_block().unwrap().is_empty(), "the end stays");
    }
}

#[test]
fn a_file_may_grow_or_shrink_while_it_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    fs::write(&path, vec![1; 2 * BLOCK]).unwrap();
    let mut blocks = Blocks::open(path.clone()).unwrap();
    assert_eq!(blocks.read_block().unwrap().len(), BLOCK);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&vec![2; 2 * BLOCK]).unwrap();
    assert_eq!(all(&mut blocks).0.len(), 3 * BLOCK);

    let mut blocks = Blocks::open(path).unwrap();
    assert_eq!(blocks.read_block().unwrap().len(), BLOCK);
    file.set_len(BLOCK as u64 + 5).unwrap();
    assert_eq!(all(&mut blocks).0.len(), 5);
}
