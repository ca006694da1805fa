'use strict'

/** The bounds of a range for the addon. As in classic-level, gte and lte matter more than gt and lt. */
function range ({ gt, gte, lt, lte }) {
  return {
    lower: gte ?? gt,
    hasLower: gte != null,
    upper: lte ?? lt,
    hasUpper: lte != null
  }
}

module.exports = { range }
