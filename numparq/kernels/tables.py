"""Tables that tell kernels what to decode: column chunks, pages, page locations, batches."""

from __future__ import annotations

# --- chunk table: written by the caller, except where noted ---------------------------------------------------------
C_START = 0  # position in the raw buffer of its first page header
C_END = 1  # position after its last page
C_NUM_VALUES = 2  # number of values, nulls included, by the footer
C_CODEC = 3  # CompressionCodec
C_TYPE = 4  # physical Type
C_TYPE_LENGTH = 5  # bytes of a value as stored; 0 for BYTE_ARRAY and BOOLEAN
C_MAX_DEFINITION = 6  # 0 or 1 in flat columns
C_CAST = 7  # one of the casts below
C_ITEM_SIZE = 8  # bytes of a value in the output
C_NULLS = 9  # one of the null policies below
C_FILL = 10  # fill value for nulls, as the low bytes of an int64
C_OUT = 11  # byte position in the output of the chunk's first row
C_VALIDITY = 12  # byte position in the validity of the chunk's first row
C_ROW_START = 13  # selected rows (exclusive stop), counted from the chunk's first
C_ROW_STOP = 14
C_DICTIONARY = 15  # byte position of the chunk's dictionary in the dictionary buffer
C_DICTIONARY_SIZE = 16  # its number of values; -1: no dictionary
C_DICTIONARY_PAGE = 17  # its row in the page table; -1: no dictionary (written by scan_pages)
C_FIRST_PAGE = 18  # its rows in the page table (written by scan_pages)
C_LAST_PAGE = 19
C_NULL_COUNT = 20  # nulls among the selected rows (counted by the decoders)
C_MAX_RATIO = 21  # most bytes that one compressed byte can stand for; 0: unknown
C_QUIRKS = 22  # its writer's quirks that concern all pages: the bits below
C_DICTIONARY_UNREAD = 23  # bytes of its dictionary page that follow the entries (written by the decoders)
C_PLAIN_SIZE = 24  # total_uncompressed_size, page headers included, by the footer
C_SEALED = 25  # stored bytes of a page body beyond its plaintext: 0, GCM_OVERHEAD or CTR_OVERHEAD
C_ROW_GROUP = 26  # of an encrypted chunk: ordinals of its row group and leaf column, and whether its first page is a
C_LEAF = 27  # dictionary page
C_FIRST_IS_DICTIONARY = 28
CHUNK_FIELDS = 29
ALWAYS_COMPRESSED = 1  # V2 pages are compressed although their headers deny it
PREFIX_CARRYOVER = 2  # a DELTA_BYTE_ARRAY page may take its first prefix from the page before (PARQUET-246)
UNKNOWN_END = 4  # bytes may follow the last page of a column chunk
ARRAY_FILLERS = 8  # a null list of fixed size has an entry for each of its elements (DuckDB)

# --- page table: written by scan_pages ------------------------------------------------------------------------------
P_CHUNK = 0  # its row in the chunk table
P_TYPE = 1  # PageType
P_ENCODING = 2  # Encoding of the values
P_NUM_VALUES = 3  # number of values, nulls included
P_NUM_NULLS = 4  # nulls that the length of its BYTE_STREAM_SPLIT values implies; -1: the levels decide
P_BODY = 5  # position in the raw buffer of the first byte after the header
P_COMPRESSED = 6  # bytes of the body as stored
P_UNCOMPRESSED = 7  # bytes of the body decompressed
P_DEFINITION_BYTES = 8  # V2 pages only
P_REPETITION_BYTES = 9
P_DEFINITION_ENCODING = 10  # V1 pages only
P_REPETITION_ENCODING = 11
P_IS_COMPRESSED = 12  # whether the value section is compressed
P_CRC = 13  # -1: none
P_ROW = 14  # row in the chunk of its first value
P_SCRATCH = 15  # position of the decompressed bytes in the scratch buffer
P_HEADER = 16  # position in the raw buffer of the header
P_IN_CHUNK = 17  # ordinal among the chunk's pages
P_UNREAD = 18  # bytes that follow the last level or value in their sections: ignored (counted by the decoders)
P_SEALED = 19  # stored bytes of the body beyond its plaintext; 0: plain, or decrypted in place
PAGE_FIELDS = 20

# --- encrypted modules (Encryption.md): length, nonce, ciphertext, and in GCM a tag; decrypted in place ---------------
GCM_OVERHEAD = 32  # bytes of a GCM module beyond its plaintext
CTR_OVERHEAD = 16  # bytes of a CTR module beyond its plaintext
PLAINTEXT_OFFSET = 16  # of the plaintext in either module, after length and nonce
TAG_BYTES = 16

# --- batches of pages that are decompressed together: written by lay_out_scratch ------------------------------------
B_FIRST = 0  # its first page; the batch ends at the next one's
B_SNAPPY = 1  # whether all its compressed pages are Snappy
B_TRANSCODER = 2  # the transcoder of all its pages, one of those below
BATCH_FIELDS = 3

# --- kernels that transcode pages to PLAIN: of encodings that the decoders do not read --------------------------------
NO_TRANSCODER = 0
DELTA_TRANSCODER = 1
ALP_TRANSCODER = 2
ENCODINGS = 11  # rows of the table (encoding, physical type) -> transcoder, and items of a row
PHYSICAL_TYPES = 8

# --- casts of stored values to the output type ----------------------------------------------------------------------
COPY = 0  # unchanged; BOOLEAN: one byte each
NARROW = 1  # INT32 to its low one or two bytes
WIDEN_SIGNED = 2  # INT32, INT64 to float64; INEXACT beyond 2**53
WIDEN_UNSIGNED = 3
INT96_NS = 4  # INT96 to nanoseconds since 1970; INEXACT beyond an int64
INT96_US = 5  # INT96 to microseconds since 1970, rounded down
CODES = 6  # dictionary indices as int32
DAYS_MS = 7  # INT32 days to int64 milliseconds since 1970

# --- null policies --------------------------------------------------------------------------------------------------
NULLS_FILL = 0
NULLS_MASK = 1  # filled, and the validity is written
NULLS_RAISE = 2  # NULL_FOUND

BIT_PACKED_LOW = 1 << 32  # not in the format: BIT_PACKED from the lowest bit (`format.writer_quirks`)
# Every buffer has this many more bytes after its last useful one, which kernels may read, or write in outputs.
SLACK = 64

# --- page locations -------------------------------------------------------------------------------------------------
L_START = 0  # position in the raw buffer of its header
L_END = 1  # position after its last byte
L_ROW = 2  # its first row in the row group; -1: a dictionary page
L_ROWS = 3  # its number of rows
L_IN_CHUNK = 4  # ordinal among the chunk's pages
LOCATION_FIELDS = 5
