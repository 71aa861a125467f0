use http_body_util::{BodyExt, StreamBody};

use super::*;

fn two_pieces() -> RequestContent {
    let pieces = ["one", "two"].map(|piece| Ok::<_, BoxError>(Frame::data(Bytes::from(piece))));
    RequestContent::new(Body::new(StreamBody::new(futures_util::stream::iter(
        pieces,
    ))))
}

#[tokio::test]
async fn content_can_be_lent_again_until_it_was_read() {
    let upload = two_pieces();
    let mut first = upload.lend();
    let mut second = upload.lend();
    assert!(upload.is_whole() && !upload.is_empty());
    // The first handle is out of date and reads nothing.
    assert!(first.frame().await.unwrap().is_err());
    assert!(upload.is_whole());
    let frame = second.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "one");
    assert!(!upload.is_whole() && !upload.is_over());
    assert_eq!(second.collect().await.unwrap().to_bytes(), "two");
    assert!(upload.is_over());
}

#[tokio::test]
async fn no_content_is_always_whole() {
    let upload = RequestContent::new(Body::empty());
    for _ in 0..2 {
        let content = upload.lend().collect().await.unwrap();
        assert!(content.to_bytes().is_empty());
        assert!(upload.is_whole() && upload.is_empty() && upload.is_over());
    }
}
