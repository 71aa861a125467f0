//! Sends back what clients send, on UDP port 4433: `cargo run --example echo_server`.

use swiftwater::{DevCertificate, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let certificate = DevCertificate::generate(["localhost"])?;
    std::fs::write("echo-certificate.pem", certificate.certificate_pem())?;
    let server = Server::builder()
        .dev_certificate(&certificate)
        .alpn(["echo"]);
    let server = server.bind("[::]:4433".parse()?)?;
    println!(
        "listening on {}; certificate in echo-certificate.pem",
        server.local_addr()
    );
    while let Some(connection) = server.accept().await {
        tokio::spawn(async move {
            while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                tokio::spawn(async move { tokio::io::copy(&mut recv, &mut send).await });
            }
        });
    }
    Ok(())
}
