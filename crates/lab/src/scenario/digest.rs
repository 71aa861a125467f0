//! Digest of everything that rows depend on: rows with another digest belong to another experiment.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use swiftwater_link::{LinkConfig, Rate};

use super::Case;

/// Changes when the meaning of a setup changes.
const VERSION: &str = "swiftwater-lab rows 1";

/// A digest under construction.
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    /// Starts with the axes and the first seed. Titles, claims and figures are irrelevant, and so is
    /// the number of repeats: a row is the same however many there are.
    pub(super) fn new(axes: &[super::Axis], seed: u64) -> Self {
        /// Fields only group labels: what a row depends on is in the setup.
        #[derive(Debug)]
        struct Axis<'a> {
            #[expect(dead_code, reason = "read by Debug")]
            name: &'a str,
            #[expect(dead_code, reason = "read by Debug")]
            labels: &'a [String],
        }
        let axes: Vec<Axis<'_>> = (axes.iter())
            .map(|axis| Axis {
                name: &axis.name,
                labels: &axis.labels,
            })
            .collect();
        let mut fingerprint = Self(Sha256::new());
        fingerprint.add(&format!("{VERSION} seed {seed} {axes:?}"));
        fingerprint
    }

    /// Adds a case. `traces` identifies the content of the traces that its links follow.
    pub(super) fn add_case(&mut self, case: &Case, traces: &str) {
        let mut setup = case.setup.clone();
        for link in &mut setup.links {
            strip(&mut link.forward);
            strip(&mut link.backward);
        }
        // The setup's `Debug` has every field, those of the controllers' configurations included: a
        // changed default of a controller is another experiment.
        let setup = format!("{setup:?}");
        // A setup has the digest that it had before there were fields that it has no use for.
        let setup = setup
            .replace(", parallel: None", "")
            .replace(", paths: None", "")
            .replace(", migrates: false", "")
            .replace(", feedback: None", "")
            .replace(", tunnel: None", "")
            .replace(", report_loss: 0.0", "");
        self.add(&format!("{:?} {setup} {traces}", case.labels));
    }

    pub(super) fn finish(self) -> String {
        hex(&self.0.finalize())
    }

    fn add(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }
}

/// Removes the traces, which are long and identified separately.
fn strip(link: &mut LinkConfig) {
    if let Rate::Trace(_) = link.rate {
        link.rate = Rate::Unlimited;
    }
    link.delay_trace = None;
    link.loss_trace = None;
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
