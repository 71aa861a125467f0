//! `identity FOLDER` creates the certificates of servers and clients: `ca.pem`, `cert.pem` (for
//! `localhost`, signed by it) and `key.pem`, all ECDSA P-256.

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("usage: identity FOLDER")?;
    let folder = PathBuf::from(folder);

    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let name = "Authority of the comparison";
    authority.distinguished_name.push(DnType::CommonName, name);
    let authority_key = KeyPair::generate()?;
    fs::write(
        folder.join("ca.pem"),
        authority.self_signed(&authority_key)?.pem(),
    )?;
    let issuer = Issuer::new(authority, authority_key);

    let mut server = CertificateParams::new(["localhost".to_owned()])?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server
        .distinguished_name
        .push(DnType::CommonName, "localhost");
    let key = KeyPair::generate()?;
    fs::write(
        folder.join("cert.pem"),
        server.signed_by(&key, &issuer)?.pem(),
    )?;
    fs::write(folder.join("key.pem"), key.serialize_pem())?;
    Ok(())
}
