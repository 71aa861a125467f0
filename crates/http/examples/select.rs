//! Requests a URL many times with a selection of protocols, and prints what was chosen and why.
//!
//! ```text
//! swiftwater serve . --state-dir state
//! cargo run -p swiftwater-http --example select -- state/dev-cert.pem https://localhost:4433/ wise
//! ```

use std::error::Error;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use swiftwater_http::client::{ArmChoice, HttpClient, Measurements, ResponseExt, Select};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_net::Endpoint;
use swiftwater_net::quic::{ClientConfig, EndpointConfig, TransportConfig};
use swiftwater_tls::{ClientTls, EndpointSecrets};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, url, strategy] = &args[..] else {
        return Err("usage: select CERTIFICATE.PEM URL wise|wise1|plus|race|ARM".into());
    };
    let trusted = CertificateDer::from_pem_file(certificate)?;
    let tls = ClientTls::with_roots([trusted])?.alpn([ALPN_HTTP3]);
    let over_tcp = tls.over_tcp()?;
    let config = ClientConfig {
        crypto: Arc::new(tls),
        transport: Arc::new(TransportConfig::default()),
    };
    let mut seed = [0; 32];
    let random = aws_lc_rs::default_provider().secure_random;
    random.fill(&mut seed).map_err(|_| "no randomness")?;
    let secrets = EndpointConfig::new(Arc::new(EndpointSecrets::random()));
    let client = HttpClient::builder()
        .quic(Endpoint::client("[::]:0".parse()?, secrets, seed)?, config)
        .tls(over_tcp)
        .assume_http3(true)
        .protocol(Select::new(strategy.parse()?))
        .build()?;
    for _ in 0..20 {
        let response = client.get(url.as_str()).await?;
        let choice = response.extensions().get::<ArmChoice>().cloned();
        let measured = response.extensions().get::<Measurements>().cloned();
        response.bytes_within(100_000_000).await?;
        if let (Some(choice), Some(measured)) = (choice, measured) {
            let time = measured.snapshot().completion.unwrap_or_default();
            println!("{:8} {time:>10.1?}  {}", choice.arm.name(), choice.reason);
        }
    }
    println!("{:#?}", client.selection());
    Ok(())
}
