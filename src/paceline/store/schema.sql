-- Paceline store, schema version 1. Rows are only ever added: a launch is one row when it starts
-- and one row when it ends, so that a reader or a crash can never see half of a result. Where the
-- size of a launch is known only at its end, its first row is renewed together with the second.
CREATE TABLE launches (
    id TEXT PRIMARY KEY,
    study TEXT NOT NULL,
    created_at TEXT NOT NULL,
    framework TEXT NOT NULL,
    model TEXT NOT NULL,
    world_size INTEGER NOT NULL,
    nodes INTEGER NOT NULL,
    batch_per_rank INTEGER NOT NULL,
    precision TEXT NOT NULL,
    instrument TEXT NOT NULL,
    synchronised INTEGER NOT NULL,
    warmup_steps INTEGER NOT NULL,
    provenance TEXT NOT NULL,
    owner TEXT NOT NULL,
    job TEXT NOT NULL,
    environment TEXT NOT NULL
);
CREATE INDEX launches_by_study ON launches (study);
CREATE TABLE outcomes (
    launch_id TEXT PRIMARY KEY REFERENCES launches (id),
    status TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    result TEXT NOT NULL
);
CREATE TABLE designs (
    study TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    design TEXT NOT NULL
);
CREATE TABLE profiles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    machine TEXT NOT NULL,
    created_at TEXT NOT NULL,
    profile TEXT NOT NULL
);
