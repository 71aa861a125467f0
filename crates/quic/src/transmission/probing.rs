//! Packets in a datagram of their own: path validation on candidate paths (RFC 9000, section 8.2), and
//! probes of the datagram size (section 14.4).

use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::handshake::KeysUnavailable;
use crate::transmit::Transmit;

use super::Transmission;
use super::packet::{Destination, Target, ValidationFrames};
use super::plan::Packet;
use crate::buffers::Workspace;

/// Probe timeouts after which an MTU probe counts as lost, if its fate didn't show before.
const PROBE_LOST_PTOS: u32 = 3;

impl Transmission<'_> {
    /// Writes the challenge, the response or both that wait on the candidate path at index `at`.
    ///
    /// # Errors
    ///
    /// There are no keys to protect the packet with.
    pub(crate) fn validate_candidate(
        &mut self,
        at: usize,
        buf: &mut [u8],
        workspace: &mut Workspace,
    ) -> Result<Option<Transmit>, KeysUnavailable> {
        let data = self.identity.random.challenge_data();
        let current = self.path.cids.remote.current();
        let Some(candidate) = self.path.network.candidates.get_mut(at) else {
            return Ok(None);
        };
        let address = candidate.address;
        let budget = usize::try_from(candidate.amplification.budget()).unwrap_or(usize::MAX);
        let limit = MIN_INITIAL_SIZE.min(budget).min(buf.len());
        let frames = ValidationFrames {
            challenge: candidate.validation.needs_challenge().then_some(data),
            response: candidate.responses.pop(),
        };
        if frames.challenge.is_some() {
            let expanded = limit >= MIN_INITIAL_SIZE;
            candidate.validation.on_sent(self.now, data, expanded);
        }
        let target = Target {
            // Padding that doesn't make a full datagram would only use up the limit, which then
            // permits fewer challenges (RFC 9000, section 8.2.1).
            pad_to: if limit < MIN_INITIAL_SIZE { 0 } else { limit },
            is_last: true,
            destination: Destination::Candidate {
                cid: candidate.cid.map_or(current, |cid| cid.cid),
                frames,
            },
        };
        let out = &mut buf[..limit];
        let size = self.build_packet(Packet::validation(), &target, out, workspace)?;
        if size == 0 {
            return Ok(None);
        }
        if let Some(candidate) = self.path.network.candidates.get_mut(at) {
            candidate.amplification.on_sent(size);
        }
        self.monitor.on_datagram_sent(size);
        Ok(Some(Transmit::single(self.path.id, &address, None, size)))
    }

    /// Writes a probe of `size` bytes, which `buf` has room for.
    ///
    /// # Errors
    ///
    /// There are no keys to protect the packet with.
    pub(crate) fn probe_mtu(
        &mut self,
        size: u16,
        buf: &mut [u8],
        workspace: &mut Workspace,
    ) -> Result<Option<Transmit>, KeysUnavailable> {
        let target = Target {
            pad_to: usize::from(size),
            is_last: true,
            destination: Destination::InUse,
        };
        let number = self.path.space.ledger.next_number();
        let out = &mut buf[..usize::from(size)];
        let built = self.build_packet(Packet::mtu_probe(), &target, out, workspace)?;
        if built == 0 {
            return Ok(None);
        }
        let lost_after = self.path.pto(self.max_ack_delay) * PROBE_LOST_PTOS;
        let network = &mut self.path.network;
        let ecn = network.ecn.mark();
        network.on_datagram_sent(built);
        network
            .mtu
            .on_probe_sent(self.now, number, size, lost_after);
        self.monitor.on_datagram_sent(built);
        let id = self.path.id;
        Ok(Some(Transmit::single(id, &network.address, ecn, built)))
    }
}
