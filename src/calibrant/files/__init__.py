"""Files: csv, jsonl, parquet and npz as Arrow batches, atomic writes, locks."""
