"""Contract suites that come with the package, so that a third party can run them too."""
