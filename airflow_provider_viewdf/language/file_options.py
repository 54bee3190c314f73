"""The options with which Spark may read files: how they are written, but not where they are, nor who may read them."""

from __future__ import annotations

_FILES = "pathGlobFilter recursiveFileLookup modifiedBefore modifiedAfter ignoreMissingFiles ignoreCorruptFiles"
_TEXTS = (
    "encoding charset lineSep multiLine mode columnNameOfCorruptRecord locale timeZone "
    "dateFormat timeFormat timestampFormat timestampNTZFormat enableDateTimeParsingFallback"
)
_OPTIONS = {
    "csv": f"{_FILES} {_TEXTS} sep delimiter header enforceSchema quote escape charToEscapeQuoteEscaping "
    "unescapedQuoteHandling comment ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace nullValue emptyValue nanValue "
    "positiveInf negativeInf maxColumns maxCharsPerColumn preferDate columnPruning inferSchema samplingRatio",
    "json": f"{_FILES} {_TEXTS} primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes "
    "allowNumericLeadingZeros allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers "
    "dropFieldIfAllNull samplingRatio",
    "parquet": f"{_FILES} mergeSchema datetimeRebaseMode int96RebaseMode",
}


def options_of(format: str) -> list[str]:
    """The names of a format's options, in Spark's spelling."""
    return _OPTIONS[format].split()
