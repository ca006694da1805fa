# find_package(windrow) defines the target windrow::windrow, the shared library.
get_filename_component(windrow_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET windrow::windrow)
  add_library(windrow::windrow SHARED IMPORTED)
  set_target_properties(windrow::windrow PROPERTIES
    IMPORTED_LOCATION "${windrow_prefix}/lib/libwindrow.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${windrow_prefix}/include")
endif()
