//! AES of single blocks, for encrypted connection IDs of load balancers (QUIC-LB).

use std::fmt;

use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey,
};
use swiftwater_quic::crypto::BlockCipher;

/// Why aws-lc can't fail here.
const WHOLE_BLOCK: &str = "one block is a whole number of blocks";
/// Why the keys can be made.
const KEY_SIZE: &str = "the key has the size of an AES-128 key";

/// AES-128 in the mode that QUIC-LB calls AES-ECB: block by block.
pub struct Aes128Block {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

impl Aes128Block {
    /// With the key that load balancer and servers share.
    pub fn new(key: [u8; 16]) -> Self {
        let unbound = || UnboundCipherKey::new(&AES_128, &key).expect(KEY_SIZE);
        Self {
            encrypting: EncryptingKey::ecb(unbound()).expect(KEY_SIZE),
            decrypting: DecryptingKey::ecb(unbound()).expect(KEY_SIZE),
        }
    }
}

impl fmt::Debug for Aes128Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aes128Block(..)")
    }
}

impl BlockCipher for Aes128Block {
    fn encrypt_block(&self, block: &mut [u8; 16]) {
        self.encrypting.encrypt(block).expect(WHOLE_BLOCK);
    }

    fn decrypt_block(&self, block: &mut [u8; 16]) {
        self.decrypting
            .decrypt(block, DecryptionContext::None)
            .expect(WHOLE_BLOCK);
    }
}
