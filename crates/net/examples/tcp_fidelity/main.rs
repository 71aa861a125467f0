//! The simulated TCP beside the kernel's own on the same emulated links: mean times from the beginning
//! of the handshake to the last byte of a response.
//!
//! ```sh
//! cargo run -p swiftwater-net --features tun --example tcp_fidelity -- \
//!     RESULTS [REPEATS] [AT_ONCE] [large-windows] [rtt|loss|mbps|bytes=VALUE]...
//! cargo run -p swiftwater-net --features tun --example tcp_fidelity -- pairs RESULTS
//! cargo run -p swiftwater-net --features tun --example tcp_fidelity -- \
//!     transfer RTT_MS LOSS MBPS BYTES SEED
//! ```
//!
//! `RESULTS` is a file to which the kernel's times are appended; what is in it is not measured again, so
//! that the simulator can be changed and compared anew. A transfer during which the machine stopped for
//! 40 ms is measured again. Repeat *n* has the same seed on both sides: the
//! *n*-th packet on a link is lost in both or in none, as long as both send the same. Needs Linux, root
//! and `/dev/net/tun`; without them only what the file has is compared. `pairs` prints the
//! times of each transfer, and `transfer` shows one in detail: when each tenth had arrived, and the
//! counters of both senders.

mod cells;
mod kernel;
mod results;
mod simulated;
mod watchdog;

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use cells::{Cell, cells};
use kernel::Windows;
use results::Results;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, cell @ ..] = &arguments[..]
        && mode == "transfer"
    {
        return transfer(cell);
    }
    if let [mode, file] = &arguments[..]
        && mode == "pairs"
    {
        return pairs(&Results::open(Path::new(file))?, Windows::Default);
    }
    let [file, rest @ ..] = &arguments[..] else {
        return Err("RESULTS [REPEATS] [AT_ONCE]".into());
    };
    let number = |at: usize, default: u64| -> Outcome<u64> {
        Ok(rest.get(at).map_or(Ok(default), |text| text.parse())?)
    };
    let (repeats, at_once) = (number(0, 30)?, number(1, 6)?);
    let mut windows = Windows::Default;
    let mut chosen = cells();
    for option in rest.iter().skip(2) {
        if option == "large-windows" {
            windows = Windows::Large;
        } else {
            select(&mut chosen, option)?;
        }
    }
    let results = Mutex::new(Results::open(Path::new(file))?);
    if let Err(error) = measure(&results, &chosen, (repeats, at_once), windows) {
        eprintln!("the kernel is not measured: {error}");
    }
    let results = results.into_inner().map_err(|_| "a thread failed")?;
    report(&results, windows)
}

/// Keeps the cells that an option permits: `loss=0.1`, say.
fn select(cells: &mut Vec<Cell>, option: &str) -> Outcome<()> {
    let (key, value) = option
        .split_once('=')
        .ok_or_else(|| format!("unknown: {option}"))?;
    let value: f64 = value.parse()?;
    let of = match key {
        "rtt" => |cell: &Cell| cell.rtt_ms as f64,
        "loss" => |cell: &Cell| cell.loss,
        "mbps" => |cell: &Cell| cell.mbps as f64,
        "bytes" => |cell: &Cell| cell.bytes as f64,
        _ => return Err(format!("unknown: {option}").into()),
    };
    cells.retain(|cell| (of(cell) - value).abs() < 1e-9);
    Ok(())
}

/// Runs what is not in the file yet.
fn measure(
    results: &Mutex<Results>,
    chosen: &[Cell],
    (repeats, at_once): (u64, u64),
    windows: Windows,
) -> Outcome<()> {
    let mut missing = VecDeque::new();
    for seed in 1..=repeats {
        for &cell in chosen {
            let known = results.lock().map_err(|_| "a thread failed")?;
            // Without loss every repeat is the same.
            if known.time(&cell, seed).is_none() && (cell.loss > 0.0 || seed <= 5) {
                missing.push_back((cell, seed));
            }
        }
    }
    let missing = Mutex::new(missing);
    watchdog::start();
    let work = || -> Outcome<()> {
        loop {
            let next = missing.lock().map_err(|_| "a thread failed")?.pop_front();
            let Some((cell, seed)) = next else {
                return Ok(());
            };
            let late = watchdog::late();
            let took = kernel::run(&cell, seed, windows)?;
            if watchdog::late() > late {
                missing
                    .lock()
                    .map_err(|_| "a thread failed")?
                    .push_back((cell, seed));
                continue;
            }
            let mut results = results.lock().map_err(|_| "a thread failed")?;
            results.add(&cell, seed, took.millis)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread failed")??;
        }
        Ok(())
    })
}

/// Prints the time of each transfer on both sides, milliseconds.
fn pairs(results: &Results, windows: Windows) -> Outcome<()> {
    for cell in cells() {
        for (seed, kernel) in results.of(&cell) {
            let simulated = simulated::run(&cell, seed, windows)?.millis;
            let Cell {
                rtt_ms,
                loss,
                mbps,
                bytes,
            } = cell;
            println!("{rtt_ms} {loss} {mbps} {bytes} {seed} {kernel:.1} {simulated:.1}");
        }
    }
    Ok(())
}

/// Shows one transfer on both sides.
fn transfer(arguments: &[String]) -> Outcome<()> {
    let [rtt_ms, loss, mbps, bytes, seed] = arguments else {
        return Err("transfer RTT_MS LOSS MBPS BYTES SEED".into());
    };
    let cell = Cell {
        rtt_ms: rtt_ms.parse()?,
        loss: loss.parse()?,
        mbps: mbps.parse()?,
        bytes: bytes.parse()?,
    };
    let seed = seed.parse()?;
    let kernel = kernel::run(&cell, seed, Windows::Default)?;
    let simulated = simulated::run(&cell, seed, Windows::Default)?;
    println!("kB | kernel, ms | simulated, ms");
    for tenth in 1..=10 {
        let bytes = cell.bytes * tenth / 10;
        let measured = kernel.progress.iter().find(|at| at.1 as u64 >= bytes);
        let computed = simulated.progress.iter().find(|at| at.1 >= bytes);
        let time = |at: Option<f64>| at.map_or(String::new(), |ms| format!("{ms:.1}"));
        println!(
            "{} | {} | {}",
            bytes / 1000,
            time(measured.map(|at| at.0)),
            time(computed.map(|at| at.0))
        );
    }
    let (measured, computed) = (kernel.packets_up, simulated.packets_up);
    println!("packets of the client: {measured} | {computed}");
    println!("kernel: {:?}", kernel.counters);
    println!("simulated: {:?}", simulated.stats);
    Ok(())
}

struct Row {
    cell: Cell,
    repeats: usize,
    kernel: f64,
    simulated: f64,
    /// Standard error of the mean difference, as a share of the kernel's mean.
    error: f64,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.simulated / self.kernel
    }
}

/// Prints the table, the greatest differences first.
fn report(results: &Results, windows: Windows) -> Outcome<()> {
    let mut rows = Vec::new();
    for cell in cells() {
        let times = results.of(&cell);
        if times.is_empty() {
            continue;
        }
        let mut pairs = Vec::new();
        for (seed, kernel) in times {
            pairs.push((kernel, simulated::run(&cell, seed, windows)?.millis));
        }
        rows.push(summary(cell, &pairs));
    }
    rows.sort_by(|a, b| deviation(b).total_cmp(&deviation(a)));
    let within = rows.iter().filter(|row| deviation(row) <= 0.1).count();
    println!("{within} of {} cells within 10 %\n", rows.len());
    println!("| RTT | loss | rate | response | repeats | kernel, ms | simulated, ms | ratio |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for row in rows {
        let Cell {
            rtt_ms,
            loss,
            mbps,
            bytes,
        } = row.cell;
        println!(
            "| {rtt_ms} ms | {} % | {mbps} Mbit/s | {} kB | {} | {:.0} | {:.0} | {:.3} ± {:.3} |",
            loss * 100.0,
            bytes / 1000,
            row.repeats,
            row.kernel,
            row.simulated,
            row.ratio(),
            row.error,
        );
    }
    Ok(())
}

fn deviation(row: &Row) -> f64 {
    (row.ratio() - 1.0).abs()
}

fn summary(cell: Cell, pairs: &[(f64, f64)]) -> Row {
    let count = pairs.len() as f64;
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count;
    let kernel = mean(&mut pairs.iter().map(|pair| pair.0));
    let simulated = mean(&mut pairs.iter().map(|pair| pair.1));
    let shift = simulated - kernel;
    let squares = mean(&mut pairs.iter().map(|pair| (pair.1 - pair.0 - shift).powi(2)));
    Row {
        cell,
        repeats: pairs.len(),
        kernel,
        simulated,
        error: (squares / (count - 1.0).max(1.0)).sqrt() / kernel,
    }
}
