"""Tables that tell kernels what to decode: column chunks, pages, page locations, batches."""

from __future__ import annotations

# --- column chunks: written by the caller, but for the counts at the end --------------------------------------------
C_START = 0  # position in the raw buffer of its first page header
C_END = 1  # position after its last page
C_NUM_VALUES = 2  # values by the footer
C_CODEC = 3  # CompressionCodec
C_TYPE = 4  # physical Type
C_TYPE_LENGTH = 5  # bytes of a value as stored; 0 for BYTE_ARRAY and BOOLEAN
C_MAX_DEFINITION = 6  # 0 or 1 in flat columns
C_CAST = 7  # one of the conversions below
C_ITEM_SIZE = 8  # bytes of a value in the output
C_NULLS = 9  # one of the null policies below
C_FILL = 10  # what stands for a null, as the low bytes of an int64
C_OUT = 11  # position in bytes in the output of the chunk's first row
C_VALIDITY = 12  # position in bytes in the validity of the chunk's first row
C_ROW_START = 13  # rows wanted, counted from the chunk's first
C_ROW_STOP = 14
C_DICTIONARY = 15  # position in bytes in the dictionary buffer of the chunk's dictionary
C_DICTIONARY_SIZE = 16  # its number of values; -1: there is none
C_DICTIONARY_PAGE = 17  # its row in the page table; -1: there is none (written by scan_pages)
C_FIRST_PAGE = 18  # its rows in the page table (written by scan_pages)
C_LAST_PAGE = 19
C_NULL_COUNT = 20  # nulls among the rows wanted (added up by the decoders)
C_MAX_RATIO = 21  # bytes that one compressed byte may stand for; 0: not known
C_QUIRKS = 22  # what its writer got wrong of all pages: the bits below
CHUNK_FIELDS = 23
ALWAYS_COMPRESSED = 1  # pages of version 2 are compressed although they say that they are not
PREFIX_CARRYOVER = 2  # the first string of a DELTA_BYTE_ARRAY page may begin as the last one of the page before

# --- pages: written by scan_pages -----------------------------------------------------------------------------------
P_CHUNK = 0  # its row in the chunk table
P_TYPE = 1  # PageType
P_ENCODING = 2  # Encoding of the values
P_NUM_VALUES = 3  # values, nulls among them
P_NUM_NULLS = 4  # -1 where the header does not say (V1)
P_BODY = 5  # position in the raw buffer of the first byte after the header
P_COMPRESSED = 6  # bytes of the body as stored
P_UNCOMPRESSED = 7  # bytes of the body once decompressed
P_DEFINITION_BYTES = 8  # of V2 pages
P_REPETITION_BYTES = 9
P_DEFINITION_ENCODING = 10  # of V1 pages
P_REPETITION_ENCODING = 11
P_IS_COMPRESSED = 12  # whether the value section has to be decompressed
P_CRC = 13  # -1: none
P_ROW = 14  # the chunk's row that its first value belongs to
P_SCRATCH = 15  # position in the scratch buffer of the decompressed bytes
P_HEADER = 16  # position in the raw buffer of the header
P_IN_CHUNK = 17  # ordinal among the chunk's pages
PAGE_FIELDS = 18

# --- batches of pages that are decompressed together: written by place_pages ----------------------------------------
B_FIRST = 0  # its first page; the next batch's is behind its last
B_SNAPPY = 1  # whether all its compressed pages are Snappy
BATCH_FIELDS = 2

# --- conversions of stored values to values of the output -----------------------------------------------------------
COPY = 0  # the bytes as they are; BOOLEAN: one byte each
NARROW = 1  # INT32 to its low one or two bytes
WIDEN_SIGNED = 2  # INT32, INT64 to float64; INEXACT where one is beyond 2**53
WIDEN_UNSIGNED = 3
INT96_NS = 4  # INT96 to nanoseconds since 1970; INEXACT beyond an int64
INT96_US = 5  # INT96 to microseconds since 1970, rounded down
CODES = 6  # dictionary indices as int32

# --- what becomes of nulls ------------------------------------------------------------------------------------------
NULLS_FILL = 0
NULLS_MASK = 1  # filled, and the validity is kept
NULLS_RAISE = 2  # NULL_FOUND

BIT_PACKED_LOW = 1 << 32  # no encoding of the format: BIT_PACKED from the lowest bit up (`column.writers`)
# Every buffer that kernels read has this many bytes that may be read, whatever they hold, behind its last useful one;
# every buffer that they write has as many that may be written.
SLACK = 64

# The places of pages: a table, like those of `tables`.
L_START = 0  # position in the raw buffer of its header
L_END = 1  # position after its last byte
L_ROW = 2  # its first row within the row group; -1: a dictionary page
L_ROWS = 3  # its rows
L_IN_CHUNK = 4  # ordinal among the chunk's pages
LOCATION_FIELDS = 5
