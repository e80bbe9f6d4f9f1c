# The parts of the program besides the core. Rooms of an annex that is off are compiled only where a test needs them, so
# that a build folder can add annexes later without compiling anything twice.

set(CARNOT_ALL_WORLDS agent alfworld dataset frozen_lake gsm8k open_qa process search_qa skeleton sokoban sudoku swe
                      webshop word_problems)
set(CARNOT_WORLDS all CACHE STRING "Environments of the program: all, or a list such as search_qa;dataset")
option(CARNOT_TOOLS "Tools beyond calculator and search: Python, MCP servers, the web, and the command tool" ON)
option(CARNOT_RETRIEVAL "The command retriever, and search by sentence encoders" ON)
option(CARNOT_RANKS "Training by several processes" ON)
option(CARNOT_REMOTE_ROLLOUTS "Rollouts by workers on other machines, and the command worker" ON)
option(CARNOT_SERVING "The commands generate, score and serve, and the evaluation of models behind an API" ON)
option(CARNOT_STUDIES "The commands compare and analyze" ON)
option(CARNOT_VIEW "The command view" ON)
option(CARNOT_CUDA "Token statistics by Carnot's own kernels on GPUs; without them by LibTorch's operators" ON)

# Rooms of the program, by carnot_has(); carnot/built.h says to the tables which these are.
function(carnot_has condition)
  foreach(room ${ARGN})
    if(${condition})
      set_property(GLOBAL APPEND PROPERTY CARNOT_BUILT_ROOMS ${room})
      set_property(GLOBAL APPEND_STRING PROPERTY CARNOT_BUILT_LINES "#define CARNOT_BUILT_${room}(x) x\n")
    else()
      set_property(GLOBAL APPEND_STRING PROPERTY CARNOT_BUILT_LINES "#define CARNOT_BUILT_${room}(x) nullptr\n")
    endif()
  endforeach()
endfunction()

function(carnot_choose_annexes)
  foreach(world ${CARNOT_ALL_WORLDS})
    if(CARNOT_WORLDS STREQUAL all OR world IN_LIST CARNOT_WORLDS)
      carnot_has(TRUE ${world})
    else()
      carnot_has(FALSE ${world})
    endif()
  endforeach()
  carnot_has(TRUE calculator search)
  carnot_has(CARNOT_TOOLS code mcp python_tools retriever_search web tool_command)
  carnot_has(CARNOT_RETRIEVAL retriever_command sentence_encoders)
  carnot_has(CARNOT_RANKS ranks)
  carnot_has(CARNOT_REMOTE_ROLLOUTS remote_rollouts)
  carnot_has(CARNOT_SERVING serving)
  carnot_has(CARNOT_STUDIES studies)
  carnot_has(CARNOT_VIEW view_command)
  carnot_has(CARNOT_CUDA cuda_statistics)
  get_property(lines GLOBAL PROPERTY CARNOT_BUILT_LINES)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/rooms/built/carnot/built.h CONTENT
"// built.h -- CARNOT_BUILT(room, x): x where the program has the room, else nullptr. Written by CMake.
#pragma once
#define CARNOT_BUILT(room, x) CARNOT_BUILT_##room(x)
@lines@" @ONLY)
endfunction()

# A table that names rooms of annexes: it includes built.h, and the program that links it links those rooms.
function(carnot_add_table name)
  target_include_directories(carnot_${name} PRIVATE ${CMAKE_BINARY_DIR}/rooms/built)
  get_property(built GLOBAL PROPERTY CARNOT_BUILT_ROOMS)
  foreach(room ${ARGN})
    if(room IN_LIST built)
      target_link_libraries(carnot_${name} PUBLIC carnot_${room})
    endif()
  endforeach()
endfunction()
