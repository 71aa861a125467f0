//! What a web server does above the versions of HTTP, as tower services and layers.
