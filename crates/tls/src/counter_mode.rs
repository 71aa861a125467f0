//! AES in counter mode, for packets that a proxy forwards (draft-ietf-masque-quic-proxy, section 6.3.2).

use std::fmt;

use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;

/// Why aws-lc can't fail here.
const ANY_LENGTH: &str =
    "counter mode takes any length, and its context is an initial counter block";
/// Why the key can be made.
const KEY_SIZE: &str = "the key has the size of an AES-128 key";

/// AES-128 in counter mode (NIST SP 800-38A, section 6.5): the counter is the whole block, a number in network byte
/// order. It protects nothing from changes.
pub struct Aes128Counter(EncryptingKey);

impl Aes128Counter {
    /// With this key.
    pub fn new(key: [u8; 16]) -> Self {
        let unbound = UnboundCipherKey::new(&AES_128, &key).expect(KEY_SIZE);
        Self(EncryptingKey::ctr(unbound).expect(KEY_SIZE))
    }

    /// Encrypts `data`, or decrypts it, which is the same, beginning with this counter block. A block that is used twice
    /// with one key reveals what the data have in common.
    pub fn apply(&self, counter: [u8; 16], data: &mut [u8]) {
        let context = EncryptionContext::Iv128(FixedLength::from(counter));
        let applied = self.0.less_safe_encrypt(data, context);
        applied.expect(ANY_LENGTH);
    }
}

impl fmt::Debug for Aes128Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aes128Counter(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST SP 800-38A, appendix F.5.1.
    #[test]
    fn vector_of_the_standard() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let counter = 0xf0f1_f2f3_f4f5_f6f7_f8f9_fafb_fcfd_feff_u128.to_be_bytes();
        let mut data = [0; 32];
        data[..16].copy_from_slice(&0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a_u128.to_be_bytes());
        data[16..].copy_from_slice(&0xae2d_8a57_1e03_ac9c_9eb7_6fac_45af_8e51_u128.to_be_bytes());
        Aes128Counter::new(key).apply(counter, &mut data);
        assert_eq!(
            data[..16],
            0x874d_6191_b620_e326_1bef_6864_990d_b6ce_u128.to_be_bytes()
        );
        assert_eq!(
            data[16..],
            0x9806_f66b_7970_fdff_8617_187b_b9ff_fdff_u128.to_be_bytes()
        );
    }

    /// The carry goes through the whole block.
    #[test]
    fn the_counter_is_the_whole_block() {
        let cipher = Aes128Counter::new([7; 16]);
        let mut across = [0; 32];
        cipher.apply([0xff; 16], &mut across);
        let mut zero = [0; 16];
        cipher.apply([0; 16], &mut zero);
        assert_eq!(across[16..], zero);
    }
}
