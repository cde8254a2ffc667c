"""Record files: JSON lines that survive crashes, and refuse to be mixed.

Reading streams and names file, line and field in every error. Writing appends one whole record per
`write`, so that a crash can at worst tear the last line, which the next run detects and removes. Each file
`verdicts.jsonl` has a run card `verdicts.run.json` beside it: the configuration it belongs to, written before
the first record, and its provenance, completed after the last.
"""

from sweetrl.records.cards import RunCard, card_path, installed_versions, now, read_card, write_card
from sweetrl.records.files import (
    fingerprint,
    getting_its_name,
    make_folder,
    read_text,
    record_lines,
    refuse_existing,
    unreadable,
    unwritable,
    write_atomically,
    write_json,
    write_lines,
)
from sweetrl.records.hub import is_on_hub
from sweetrl.records.ids import IdSet, find_by_id
from sweetrl.records.log import RecordLog, open_locked, open_log
from sweetrl.records.reading import FIX_LINE, LineDecoder, read_json, read_lines, read_records, wrong_schema
from sweetrl.records.shards import ALL, Part, Shard, is_merged_shard, part_of, shard_path
from sweetrl.records.surrogates import decode_json, without_surrogates

__all__ = [
    "ALL",
    "FIX_LINE",
    "IdSet",
    "LineDecoder",
    "Part",
    "RecordLog",
    "RunCard",
    "Shard",
    "card_path",
    "decode_json",
    "find_by_id",
    "fingerprint",
    "getting_its_name",
    "installed_versions",
    "is_merged_shard",
    "is_on_hub",
    "make_folder",
    "now",
    "open_locked",
    "open_log",
    "part_of",
    "read_card",
    "read_json",
    "read_lines",
    "read_records",
    "read_text",
    "record_lines",
    "refuse_existing",
    "shard_path",
    "unreadable",
    "unwritable",
    "without_surrogates",
    "write_atomically",
    "write_card",
    "write_json",
    "write_lines",
    "wrong_schema",
]
