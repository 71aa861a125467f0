//! Key updates that the peer initiates or follows (RFC 9001, sections 6.1 to 6.5), and the end of the keys
//! of early data (section 4.9.3).

use swiftwater_units::Instant;

use crate::crypto::EncryptionLevel;
use crate::error::TransportError;
use crate::handshake::{KeyPhaseNumbers, Opened, PacketName, Protection, UpdateCause};
use crate::observe::{Observation, Owner};

use super::Reception;

impl Reception<'_> {
    /// Notes what an opened packet says about the key phase: `phase_numbers` are the new ones of its path.
    #[inline]
    pub(super) fn on_key_phase(
        &mut self,
        name: PacketName,
        opened: Opened,
        mut phase_numbers: KeyPhaseNumbers,
    ) -> Result<(), TransportError> {
        if opened.key_updated {
            let keep_until = self.previous_keys_end();
            let cause = UpdateCause::Remote {
                number: name.number,
                phase_numbers: &mut phase_numbers,
                keep_until,
            };
            let generation = self.handshake.update_keys(cause)?;
            let initiator = Owner::Remote;
            let observation = Observation::KeyUpdated {
                generation,
                initiator,
            };
            self.monitor.observe(self.now, &observation);
        } else if opened.phase_confirmed {
            let keep_until = self.previous_keys_end();
            self.handshake.keys_mut().confirm_phase(keep_until);
        }
        if let (EncryptionLevel::OneRtt, Some(path)) = (name.level, self.paths.get_mut(name.path)) {
            path.key_phase_numbers = phase_numbers;
        }
        Ok(())
    }

    /// When receive keys of the previous phase are discarded: packets of the previous path may be under
    /// way, too.
    fn previous_keys_end(&self) -> Instant {
        let max_ack_delay = self.policies.peer_max_ack_delay(self.handshake);
        let pto = self.paths.longest_recent_pto(max_ack_delay);
        self.now + Protection::retention(pto)
    }

    /// The client sends 1-RTT packets now: early data that are still under way arrive soon or
    /// never (RFC 9001, section 4.9.3).
    #[inline]
    pub(crate) fn expire_early_data_keys(&mut self) {
        if self.handshake.keys().has(EncryptionLevel::ZeroRtt) {
            let max_ack_delay = self.policies.peer_max_ack_delay(self.handshake);
            let pto = self.paths.longest_pto(max_ack_delay);
            let keep_until = self.now + Protection::retention(pto);
            self.handshake.keys_mut().expire_early_at(keep_until);
        }
    }
}
