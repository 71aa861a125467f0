//! Says hello to `echo_server`, run in the same folder: `cargo run --example echo_client`.

use swiftwater::tls::pki_types::pem::PemObject;
use swiftwater::{CertificateDer, Client};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let certificate = CertificateDer::from_pem_file("echo-certificate.pem")?;
    let client = Client::builder()
        .trust_only([certificate])
        .alpn(["echo"])
        .build()?;
    let connection = client.connect("localhost:4433").await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"hello, world").await?;
    send.finish()?;
    let answer = recv.read_to_end(1000).await?;
    println!(
        "{} says: {}",
        connection.remote_address(),
        String::from_utf8_lossy(&answer)
    );
    client.close().await;
    Ok(())
}
