//! Fetches what describes a video: playlists, manifests, indices of segments.

use swiftwater_http::client::HttpClient;
use swiftwater_media::presentation::{
    self, Description, IndexedFile, Level, PresentationError, Resource, Source, Variant,
};
use swiftwater_media::streaming::{ChunkedVideo, Rendition};
use url::Url;

use super::fetch;
use crate::exit::{Exit, Failure};

/// The video at `url`, and where its segments are.
pub(crate) async fn presentation(
    client: &HttpClient,
    url: &crate::url::Url,
) -> Result<(ChunkedVideo, Vec<Level>), Failure> {
    let url = &Url::parse(&url.to_string()).map_err(|error| Failure::new(Exit::Usage, error))?;
    let refused = |error: PresentationError| refused(url, &error);
    let (renditions, levels): (Vec<_>, _) = match playlist(client, url).await? {
        Description::Level(level) => {
            let rate = presentation::rate_of(&level).map_err(refused)?;
            (vec![Rendition { rate, height: None }], vec![level])
        }
        Description::Variants(variants) => {
            let renditions = variants.iter().map(|variant| variant.rendition).collect();
            let mut levels = Vec::with_capacity(variants.len());
            for variant in variants {
                levels.push(level(client, variant).await?);
            }
            (renditions, levels)
        }
    };
    let video = presentation::video(&renditions, &levels).map_err(refused)?;
    Ok((video, levels))
}

async fn level(client: &HttpClient, variant: Variant) -> Result<Level, Failure> {
    match variant.source {
        Source::Level(level) => Ok(level),
        Source::Playlist(url) => match playlist(client, &url).await? {
            Description::Level(level) => Ok(level),
            Description::Variants(_) => {
                let text = format_args!("{url}: bitrates where the segments of one are expected");
                Err(Failure::new(Exit::Failure, text))
            }
        },
        Source::Index(file) => index(client, &file).await,
    }
}

async fn playlist(client: &HttpClient, url: &Url) -> Result<Description, Failure> {
    let whole = Resource {
        url: url.clone(),
        range: None,
    };
    let bytes = fetch::description(client, &whole).await?;
    presentation::parse(url, &bytes).map_err(|error| refused(url, &error))
}

async fn index(client: &HttpClient, file: &IndexedFile) -> Result<Level, Failure> {
    let range = Resource {
        url: file.url.clone(),
        range: Some(file.index),
    };
    let bytes = fetch::description(client, &range).await?;
    presentation::indexed_level(file, &bytes).map_err(|error| refused(&file.url, &error))
}

fn refused(url: &Url, error: &PresentationError) -> Failure {
    Failure::new(Exit::Failure, format_args!("{url}: {error}"))
}
